"""Apache Kafka itself, from its Maven jars: a one-node broker to compare with, and its own tools.

Everything is fetched once into the cache folder (`HEADWATER_PEERS`, else `headwater-peers` in the user's
cache) and started on loopback at a free port. `missing()` says by name what a machine lacks; the tests
that need it are then skipped by that name, or fail where `CI` is set. Nothing here is part of the product.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.peers.raw import answers

RELEASE = "4.3.1"
RELEASE_IN_SPARK = "3.9.2"  # the Java client inside Spark's own connector
START_SECONDS_MAX = 120
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
YOUNG_FEATURES = (
    "transaction.version=1",
    "group.version=0",
    "share.version=0",
    "eligible.leader.replicas.version=0",
)
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
TOOL_PACKAGES = {
    "ConsumerGroupCommand": "org.apache.kafka.tools.consumer.group",
    "ConsoleConsumer": "org.apache.kafka.tools.consumer",
    "ConfigCommand": "kafka.admin",
    "StorageTool": "kafka.tools",
}
TOOL_PACKAGES_3 = TOOL_PACKAGES | {"ConsoleProducer": "kafka.tools"}


def missing() -> str | None:
    """What this machine lacks to run Apache Kafka, by name."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            return f"Apache Kafka {RELEASE} needs `{program}`, which is not on the PATH"
    return None


def cache() -> Path:
    named = os.environ.get("HEADWATER_PEERS")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(named) if named else home / "headwater-peers"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def jars(release: str = RELEASE) -> Path:
    """The folder of Apache Kafka's jars, fetched with Maven the first time."""
    folder = cache() / f"apache-kafka-{release}"
    done = folder / ".complete"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).with_name("kafka-pom.xml"), folder / "pom.xml")
        command = ["mvn", "-q", "-B", f"-Dkafka.version={release}", COPY_JARS, "-DoutputDirectory=libs"]
        fetched = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
        if fetched.returncode:
            raise RuntimeError(f"Maven could not fetch Apache Kafka {release}:\n{fetched.stdout[-2000:]}")
        done.touch()
    return folder / "libs"


def tool_command(tool: str, *arguments: str, release: str = RELEASE, log_config: Path) -> list[str]:
    """The command line of one of Kafka's own tools, by the short name of its class."""
    packages = TOOL_PACKAGES_3 if release.startswith("3.") else TOOL_PACKAGES
    name = tool if "." in tool else f"{packages.get(tool, 'org.apache.kafka.tools')}.{tool}"
    java = ["java", "-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile=file:{log_config}"]
    return [*java, "-cp", f"{jars(release)}/*", name, *arguments]


def run_tool(
    tool: str, *arguments: str, release: str = RELEASE, stdin: str = "", seconds_max: float = 120
) -> subprocess.CompletedProcess[str]:
    command = tool_command(tool, *arguments, release=release, log_config=_log_config(cache()))
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds_max)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _log_config(folder: Path) -> Path:
    config = folder / "peers-log4j2.properties"
    lines = (
        "status=error",
        "appender.err.type=Console",
        "appender.err.name=ERR",
        "appender.err.target=SYSTEM_ERR",
        "appender.err.layout.type=PatternLayout",
        "appender.err.layout.pattern=[%d] %p %m (%c)%n",
        "rootLogger.level=warn",
        "rootLogger.appenderRef.err.ref=ERR",
    )
    config.write_text("\n".join(lines) + "\n")
    return config


class ApacheKafka:
    """One broker process (controller inside); `start` again on the same folder is a restart."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: Mapping[str, str] = {},
        features: Sequence[str] = YOUNG_FEATURES,
        heap: str = "1g",
    ) -> None:
        self.folder, self.features, self.heap = folder, tuple(features), heap
        self.port, self._controller = free_port(), free_port()
        self.settings = dict(settings)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> ApacheKafka:
        self.folder.mkdir(parents=True, exist_ok=True)
        properties = self._write_properties()
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(properties)
        command = ["java", f"-Xmx{self.heap}", "-XX:+UseG1GC", "-Djava.awt.headless=true"]
        command += [f"-Dlog4j2.configurationFile=file:{_log_config(self.folder)}"]
        command += ["-cp", f"{jars()}/*", "kafka.Kafka", str(properties)]
        log = (self.folder / "broker.log").open("ab")
        self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        log.close()
        self._wait_until_it_answers()
        return self

    def stop(self, signum: int = signal.SIGTERM) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signum)
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(timeout=30)
        self._process = None

    def _write_properties(self) -> Path:
        listeners = f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{self._controller}"
        own = {
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller}",
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": str(self.folder / "data"),
        }
        properties = self.folder / "server.properties"
        every = SETTINGS | own | self.settings
        properties.write_text("".join(f"{name}={value}\n" for name, value in every.items()))
        return properties

    def _format(self, properties: Path) -> None:
        features = [word for feature in self.features for word in ("--feature", feature)]
        done = run_tool("StorageTool", "format", "--config", str(properties), "--cluster-id",
                        "headwater-peers-cluster", *features)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"Apache Kafka could not format its folder:\n{done.stdout}{done.stderr}")

    def _wait_until_it_answers(self) -> None:
        end = time.monotonic() + START_SECONDS_MAX
        while not answers(self.address):
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > end:
                log = (self.folder / "broker.log").read_text(errors="replace")
                self.stop()
                raise RuntimeError(f"Apache Kafka {RELEASE} did not start:\n{log[-3000:]}")
