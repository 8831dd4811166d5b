"""The broker process: log, broker, loop, listener, threads and signals, put together and taken apart.

``run(options)`` returns the exit code: 0 after a clean stop (SIGTERM, SIGINT, SIGHUP, or its users are gone),
1 if the log was fenced meanwhile, 130 if a second signal cut the stop short, else the code of the error that
kept it from starting.

A fenced log (a sync failed) does not end the process: what is durable can still be read, every write is
answered with KAFKA_STORAGE_ERROR, and an operator finds a process that says what happened. Restarting by
itself would put the same disk back to work unseen.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

from headwater.broker.config import BrokerSettings
from headwater.broker.state import Broker
from headwater.core.clock import SystemClock
from headwater.core.disk import RealDisk
from headwater.core.endpoint import Endpoint, read_endpoint, remove_endpoint, write_endpoint
from headwater.core.errors import Conflict, HeadwaterError
from headwater.log import Log, LogSettings
from headwater.server.addresses import Address, listen, parse_address
from headwater.server.engine import Engine
from headwater.server.kafka_listener import CONNECTIONS_MAX, Limits
from headwater.server.log_lines import LogLines
from headwater.server.loops import new_loop
from headwater.wire.errors import KafkaError

if TYPE_CHECKING:
    from headwater.server.options import Options

USERS_SECONDS = 0.5  # between two looks whether a shared broker still has users
LOG_HANDLES_MAX = 512  # segment files that the log keeps open for writing, and as many for reading
FILES_OTHER = 128  # files of the journal, the readers, the listeners, the pipes
GC_THRESHOLDS = (50_000, 20, 100)  # the collector's full rounds stopped the loop for 20-44 ms, now 6 at most


def run(options: Options) -> int:
    """A broker, from its options to its exit code."""
    gc.disable()  # nothing that a start allocates is garbage
    lines = LogLines(sys.stderr, SystemClock())
    try:
        return BrokerProcess(options, lines).run()
    except HeadwaterError as error:
        refusal = (isinstance(error, Conflict) and runs_already(options.data)) or error
        tell_starter(options.ready_fd, error_line(refusal))
        lines.say("cannot-start", str(refusal), exit_code=refusal.exit_code)
        return refusal.exit_code
    except KeyboardInterrupt:
        return 130


class BrokerProcess:
    """What is once per process: the data directory, the loop, signals, the endpoint file, the starter."""

    def __init__(self, options: Options, lines: LogLines) -> None:
        self._options = options
        self._lines = lines
        self._clock = SystemClock()
        self._stop_asked: asyncio.Event
        self._stop_reason = ""
        self._orphaned = False
        self._users: UsersLock | None = None
        self._files = 0
        self._address: Address

    def run(self) -> int:
        options = self._options
        settings = BrokerSettings(options.settings)
        advertise = parse_address(options.advertise, "--advertise") if options.advertise else None
        sockets = listen(parse_address(options.listen, "--listen"), insecure=options.insecure_listen)
        host, port = sockets[0].getsockname()[:2]
        self._address = Address(reachable(host), port)
        if advertise is not None and not advertise.port:
            advertise = Address(advertise.host, port)  # "this name, whatever the port is"
        try:
            self._files = raise_file_limit()
            log = Log.open(RealDisk(), options.data, self._clock, log_settings(settings, self._files))
            self._report_recovery(log)
            broker = Broker.open(log, self._clock, settings)
        except BaseException:
            for listening in sockets:
                listening.close()
            raise
        loop = new_loop(options.loop)
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._serve(loop, broker, sockets, settings, advertise))
        finally:
            on_signal_end_at_once()
            loop.close()
        return self._close(log)

    async def _serve(
        self, loop: asyncio.AbstractEventLoop, broker: Broker, sockets: list[socket.socket],
        settings: BrokerSettings, advertise: Address | None,
    ) -> None:  # fmt: skip
        engine = Engine(loop, broker, self._clock, self._lines, limits_from(settings, self._files), advertise)
        loop.set_exception_handler(self._loop_error)
        self._stop_asked = asyncio.Event()
        self._watch_signals(loop)
        self._watch_starter(loop)
        await engine.start(sockets)
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()
        self._say_ready()
        await self._stop_asked.wait()
        self._lines.say("stopping", f"headwater stops: {self._stop_reason}")
        await engine.stop()

    def _close(self, log: Log) -> int:
        options = self._options
        fenced = log.fenced
        try:
            log.close()
        except (OSError, KafkaError) as error:
            fenced = fenced or str(error)
            self._lines.say("close-failed", f"the log could not be closed cleanly: {error}; the next start recovers it")
        remove_endpoint(options.data, os.getpid())
        if options.temporary and self._orphaned:
            import shutil

            shutil.rmtree(options.data, ignore_errors=True)
        self._lines.say("stopped", "headwater has stopped", clean=fenced is None)
        return 0 if fenced is None else 1

    # what is said

    def _say_ready(self) -> None:
        options = self._options
        write_endpoint(options.data, Endpoint(str(self._address), os.getpid(), options.mode))
        self._lines.say(
            "listening",
            f"headwater listening on {self._address} (data {options.data}), Ctrl-C to stop",
            address=str(self._address), data=options.data, pid=os.getpid(),
        )  # fmt: skip
        tell_starter(options.ready_fd, f"{self._address}\n")

    def _report_recovery(self, log: Log) -> None:
        report = log.recovery
        if not report.clean and not report.created:
            kept = "some of it is damaged" if report.damage else "everything acknowledged is there"
            cut = f"; {report.cut_bytes} bytes that nobody was promised were cut" if report.cut_bytes else ""
            self._lines.say(
                "recovered",
                f"the last stop was not clean; {kept} (checked in {report.seconds:.2f} s{cut})",
                seconds=report.seconds, cut_bytes=report.cut_bytes,
            )  # fmt: skip

    def _loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        message = str(context.get("message", "an error on the loop"))
        if isinstance(error, OSError):
            self._lines.often("system", f"{message}: {error}")
        elif isinstance(error, BaseException):
            self._lines.bug(message, error)
        else:
            self._lines.often("loop", message)

    # what ends it

    def _ask_to_stop(self, reason: str) -> None:
        self._stop_reason = self._stop_reason or reason
        self._stop_asked.set()

    def _watch_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup ignores it
                loop.add_signal_handler(number, self._signalled, number)

    def _signalled(self, number: int) -> None:
        if self._stop_asked.is_set():
            self._lines.say("cut-short", "a second signal: ending at once; the next start recovers the log")
            os._exit(130)
        self._ask_to_stop(signal.Signals(number).name)

    def _watch_starter(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._options.alive_fd is not None:
            os.set_inheritable(self._options.alive_fd, False)
            loop.add_reader(self._options.alive_fd, self._starter_gone, loop, self._options.alive_fd)
        if self._options.mode == "shared":
            self._users = UsersLock(self._options.data)
            loop.call_later(USERS_SECONDS, self._look_for_users, loop, 0)

    def _starter_gone(self, loop: asyncio.AbstractEventLoop, alive_fd: int) -> None:
        loop.remove_reader(alive_fd)
        self._orphaned = True
        self._ask_to_stop("the process that started it is gone")

    def _look_for_users(self, loop: asyncio.AbstractEventLoop, seen_empty: int) -> None:
        """Twice in a row nobody: the second time the lock is kept, so that who comes now waits for our end."""
        assert self._users is not None
        empty = self._users.nobody(keep=seen_empty > 0)
        if empty and seen_empty:
            self._ask_to_stop("its last user is gone")
        else:
            loop.call_later(USERS_SECONDS, self._look_for_users, loop, 1 if empty else 0)


class UsersLock:
    """``<data>/users``: every user of a shared broker holds a shared lock on it."""

    def __init__(self, data: str) -> None:
        self._fd = os.open(os.path.join(data, "users"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def nobody(self, *, keep: bool) -> bool:
        import fcntl

        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if not keep:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        return True


def log_handles(files: int) -> int:
    """Of the files that may be open, half are the log's: without a file it cannot write, and fences itself."""
    return min(LOG_HANDLES_MAX, max(8, (files - FILES_OTHER) // 4))


def log_settings(settings: BrokerSettings, files: int) -> LogSettings:
    """What the log needs to know of the broker's settings."""
    return LogSettings(
        topic_defaults=settings.topic_defaults(),
        handles_max=log_handles(files),
        retention_check_ms=settings.log_retention_check_interval_ms,
        producer_id_expiration_ms=settings.producer_id_expiration_ms,
    )


def limits_from(settings: BrokerSettings, files: int) -> Limits:
    idle_ms = settings.connections_max_idle_ms
    return Limits(
        frame_bytes_max=settings.socket_request_max_bytes,
        connections_max=min(CONNECTIONS_MAX, max(16, files - 2 * log_handles(files) - FILES_OTHER)),
        idle_seconds=idle_ms / 1000 if idle_ms >= 0 else float("inf"),
    )


def raise_file_limit() -> int:
    """As many open files as the system lets us have without asking."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = CONNECTIONS_MAX + 2 * LOG_HANDLES_MAX + FILES_OTHER
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError):
            pass
    return most if soft == resource.RLIM_INFINITY else int(soft)


def reachable(host: str) -> str:
    """An address of this machine for somebody on it, where every interface is listened on."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def on_signal_end_at_once() -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(130))


def runs_already(data: str) -> Conflict | None:
    """A port or a directory in use is most often our own broker, started a second time."""
    found = read_endpoint(data)
    if found is None or found.pid == os.getpid() or not found.is_alive():
        return None
    return Conflict(
        "start a second broker", cause=f"headwater already runs on {data} at {found.address} (pid {found.pid})",
        next_step=f"Use that one, stop it (kill {found.pid}), or give both: --data DIR --listen 127.0.0.1:0",
    )  # fmt: skip


def tell_starter(ready_fd: int | None, line: str) -> None:
    """core/processes.py reads it: an address, or an error in its parts."""
    if ready_fd is None:
        return
    try:
        os.write(ready_fd, line.encode())
        os.close(ready_fd)
    except OSError:
        pass  # the starter is gone; the other pipe says so too


def error_line(error: HeadwaterError) -> str:
    import json

    parts = {"operation": error.operation, "place": error.place, "cause": str(error.cause)}
    return json.dumps({**parts, "next_step": error.next_step, "exit_code": error.exit_code}) + "\n"
