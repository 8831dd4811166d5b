"""The one door to librdkafka: loaded on first use, its log noise kept as reasons, its calls bounded.

librdkafka retries for ever and talks to stderr; a person wants one sentence in bounded time. So each client gets a
`Reasons` that collects what librdkafka said, `interruptible` keeps Ctrl-C what it is, `bounded` gives each blocking
call a deadline (some calls outstay their own, send_offsets_to_transaction among them), and `explain` turns an error
code into the type of core/errors.py that says what to do.
"""
from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.core.errors import Conflict, Denied, HeadwaterError, NotFound, Unavailable, UsageError

if TYPE_CHECKING:
    import confluent_kafka

T = TypeVar("T")
REASONS_KEPT = 20  # the last lines tell the story; a broker that is away repeats itself for ever
ADVICE = "Check the broker, then try again; headwater.open(…, timeout=SECONDS) waits longer"
UNREACHABLE = "Check that the broker is up and that the address it advertises can be reached from here; try again"
GRACE_SECONDS = 2.0  # what a call gets beyond its own timeout before it counts as hung

_NOT_FOUND = {
    "UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_UNKNOWN_GROUP",
    "GROUP_ID_NOT_FOUND", "OFFSET_OUT_OF_RANGE", "_AUTO_OFFSET_RESET", "_NO_OFFSET",
    "TRANSACTIONAL_ID_NOT_FOUND", "RESOURCE_NOT_FOUND",
}
_CONFLICT = {
    "TOPIC_ALREADY_EXISTS", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC", "UNKNOWN_MEMBER_ID",
    "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID", "_FENCED", "PRODUCER_FENCED",
    "INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "CONCURRENT_TRANSACTIONS", "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "UNKNOWN_PRODUCER_ID", "INVALID_PRODUCER_ID_MAPPING", "_STATE", "_ASSIGNMENT_LOST", "FENCED_LEADER_EPOCH",
    "REASSIGNMENT_IN_PROGRESS", "INCONSISTENT_GROUP_PROTOCOL", "_LOG_TRUNCATION",
}
_DENIED = {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL", "SECURITY_DISABLED"}
_UNAVAILABLE = {
    "_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE", "_WAIT_COORD",
    "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION", "BROKER_NOT_AVAILABLE", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR", "NETWORK_EXCEPTION", "KAFKA_STORAGE_ERROR", "NOT_CONTROLLER", "_QUEUE_FULL", "_RETRY",
    "THROTTLING_QUOTA_EXCEEDED", "REPLICA_NOT_AVAILABLE",
}
_USAGE = {
    "_INVALID_ARG", "INVALID_CONFIG", "INVALID_PARTITIONS", "TOPIC_EXCEPTION", "INVALID_TOPIC_EXCEPTION",
    "INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT", "INVALID_REQUEST", "POLICY_VIOLATION",
    "MSG_SIZE_TOO_LARGE", "INVALID_MSG_SIZE", "INVALID_GROUP_ID", "INVALID_TIMESTAMP", "INVALID_RECORD",
    "INVALID_SESSION_TIMEOUT", "INVALID_TRANSACTION_TIMEOUT", "INVALID_REQUIRED_ACKS", "UNSUPPORTED_VERSION",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT", "_UNSUPPORTED_FEATURE", "UNSUPPORTED_COMPRESSION_TYPE",
}
_KINDS: tuple[tuple[set[str], type[HeadwaterError]], ...] = (
    (_NOT_FOUND, NotFound), (_CONFLICT, Conflict), (_DENIED, Denied), (_UNAVAILABLE, Unavailable),
    (_USAGE, UsageError),
)
_NEXT_STEPS = {
    "TOPIC_ALREADY_EXISTS": "Choose another name, or go on with the topic that is there",
    "NON_EMPTY_GROUP": "Stop its consumers first: a group with members keeps its own offsets",
    "MSG_SIZE_TOO_LARGE": "Make the record smaller, or raise max.message.bytes of the topic",
    "INVALID_RECORD": "A topic with cleanup.policy=compact takes only records with a key",
    "_UNKNOWN_PARTITION": "Check the name and the partition",
    "PRODUCER_FENCED": "Another program uses the same transactional id; this one must stop",
    "_FENCED": "Another program uses the same transactional id; this one must stop",
    "_SSL": "Check security.protocol and the certificates given with -X",
}


class Reasons:
    """What librdkafka said lately. It stands in for a logger and serves as the error callback."""

    __slots__ = ("advice", "all_down", "fetch", "lines", "unreachable")

    def __init__(self, advice: str = ADVICE) -> None:
        self.lines: deque[str] = deque(maxlen=REASONS_KEPT)
        self.advice = advice  # what to do when no answer comes in time
        self.unreachable = UNREACHABLE  # what to do when librdkafka says that it cannot get there
        self.all_down = False  # librdkafka has found nobody there, since this was last cleared
        self.fetch: Callable[[], object] | None = None  # brings lines that a client has not delivered yet

    def advise(self, step: str) -> None:
        """In both cases the same."""
        self.advice = self.unreachable = step

    def log(self, _level: int, form: str, *arguments: Any) -> None:
        # librdkafka logs "%s [%s] %s" with facility, client name, text; only the text is for people
        self._keep(str(arguments[-1]) if arguments else form)

    def on_error(self, error: confluent_kafka.KafkaError) -> None:
        if error.name() == "_ALL_BROKERS_DOWN":
            self.all_down = True
        self._keep(error.str())

    def _keep(self, line: str) -> None:
        line = re.sub(r"^\[thrd:[^\]]*\]: ", "", line)
        line = re.sub(r" \(after \d+ms in state \w+(?:[^()]|\([^)]*\))*\)", "", line)
        if line not in self.lines:
            self.lines.append(line)

    def last(self) -> str | None:
        """The line that explains most: a connection's own failure rather than "all brokers down"."""
        if self.fetch is not None:
            interruptible(self.fetch)
        for line in reversed(self.lines):
            if "brokers are down" not in line and "brokers down" not in line:
                return line
        return self.lines[-1] if self.lines else None


def load() -> Any:
    """The package confluent_kafka; Alpine has no wheel of it, and that deserves a sentence."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise HeadwaterError(
            operation="load librdkafka",
            place="from the package confluent-kafka",
            cause=str(error),
            next_step="Type: pip install confluent-kafka (there is no wheel for Alpine: use a glibc image)",
        ) from error
    return confluent_kafka


def load_admin() -> Any:
    """The module confluent_kafka.admin, whose names its type hints do not export."""
    load()
    import confluent_kafka.admin as module

    return module


def settings(servers: str, options: Mapping[str, str], reasons: Reasons, **own: Any) -> dict[str, Any]:
    """One client's configuration: ours (underscores for dots), then what the person gave with -X."""
    merged: dict[str, Any] = {
        "bootstrap.servers": servers,
        "client.id": "headwater",
        "logger": reasons,
        "error_cb": reasons.on_error,
        "broker.address.family": "any",
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1_000,
        "socket.connection.setup.timeout.ms": 10_000,
        "enable.metrics.push": False,  # an application's client sends nobody telemetry unasked
    }
    merged.update({name.replace("_", "."): value for name, value in own.items()})
    merged.update(options)
    return merged


def make(kind: Callable[[dict[str, Any]], T], configuration: dict[str, Any]) -> T:
    """A client; an option that librdkafka does not know is the person's mistake."""
    kafka = load()
    try:
        return kind(configuration)
    except (kafka.KafkaException, ValueError, TypeError) as error:
        text = _text_of(error)
        raise UsageError(
            operation="configure librdkafka",
            place="with -X",
            cause=text,
            next_step="The names are in librdkafka's CONFIGURATION.md, for example -X security.protocol=ssl",
        ) from None


def interruptible(call: Callable[..., T], *arguments: Any) -> T:
    """A call of librdkafka that runs our callbacks. Ctrl-C inside one of them is lost by confluent-kafka, which then
    has neither a result nor an exception; our callbacks raise nothing else."""
    try:
        return call(*arguments)
    except SystemError as error:
        if "without setting an exception" in str(error):
            raise KeyboardInterrupt from None
        raise


def bounded(
    call: Callable[[], T], seconds: float, operation: str, place: str, reasons: Reasons, grace: float = GRACE_SECONDS
) -> T:
    """Run a blocking call of librdkafka with a deadline that holds, and stay interruptible by Ctrl-C meanwhile."""
    outcome: list[tuple[bool, Any]] = []
    done = threading.Event()

    def run() -> None:
        try:
            outcome.append((True, call()))
        except BaseException as error:
            outcome.append((False, error))
        done.set()

    threading.Thread(target=run, name="headwater-librdkafka", daemon=True).start()
    if not done.wait(seconds + grace):
        raise timed_out(operation, place, seconds, reasons)
    good, value = outcome[0]
    if good:
        return value  # type: ignore[no-any-return]
    if isinstance(value, load().KafkaException):
        raise explain(value, operation, place, reasons) from None
    raise value


def timed_out(operation: str, place: str, seconds: float, reasons: Reasons) -> Unavailable:
    said = reasons.last()
    return Unavailable(
        operation=operation,
        place=place,
        cause=f"no answer within {seconds:g} s" + (f" ({said})" if said else ""),
        next_step=reasons.advice,
    )


def explain(error: Any, operation: str, place: str, reasons: Reasons | None = None) -> HeadwaterError:
    """A KafkaError or KafkaException as one of our errors."""
    kafka_error = _kafka_error(error)
    name = kafka_error.name() if hasattr(kafka_error, "name") else ""
    kind = next((kind for names, kind in _KINDS if name in names), HeadwaterError)
    if name.endswith("AUTHORIZATION_FAILED"):
        kind = Denied
    cause = _text_of(error)
    said = reasons.last() if reasons is not None and kind in (Unavailable, Denied) else None
    if said and said not in cause:
        cause = f"{cause} ({said})"
    unreachable = UNREACHABLE if reasons is None else reasons.unreachable
    return kind(operation=operation, place=place, cause=cause, next_step=_next_step(name, kind, cause, unreachable))


def _next_step(name: str, kind: type[HeadwaterError], cause: str, unreachable: str) -> str:
    known = _NEXT_STEPS.get(name)
    if known is not None:
        return known
    if "security.protocol" in cause or "SSL" in cause:
        return "The listener may want TLS or SASL: give -X security.protocol=ssl (or sasl_ssl) and its settings"
    if "Disconnected" in cause:
        return "Something listens there but hangs up: is it Kafka? If it wants TLS, give -X security.protocol=ssl"
    if kind is Unavailable:
        return unreachable
    if kind is Denied:
        return "Check the user, its password and its rights; credentials go in by -X sasl.username=… and so on"
    if kind is NotFound:
        return "Check the name and the cluster"
    if kind is UsageError:
        return "Change the value and try again"
    return "If it happens again, keep this message: it names what the broker answered"


def _text_of(error: Any) -> str:
    kafka_error = _kafka_error(error)
    text = kafka_error.str() if hasattr(kafka_error, "str") else str(error)
    return re.sub(r"(^|: )(Broker|Local): ", r"\1", str(text))


def _kafka_error(error: Any) -> Any:
    """The KafkaError inside a KafkaException; delivery reports bring it bare, and it has no `args` then."""
    arguments = getattr(error, "args", ())
    return arguments[0] if arguments and hasattr(arguments[0], "code") else error
