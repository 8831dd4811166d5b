"""The end of a broker whose disk refuses the last sync, and a broker that may open few files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from headwater.core.clock import SystemClock
from headwater.core.disk import Handle, RealDisk
from headwater.core.endpoint import read_endpoint
from headwater.log import Log
from headwater.server.app import BrokerProcess
from headwater.server.log_lines import LogLines
from headwater.server.options import Options
from headwater.wire.messages.create_topics import CreateTopicsResponse
from headwater.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)  # fmt: skip
from tests.peers.raw import RawConnection
from tests.peers.requests import create, records
from tests.server.running import until

PARTITIONS = 300
FILES = 256


class FullDisk(RealDisk):
    """Every sync fails from the moment on that somebody says so."""

    full = False

    def sync(self, handle: Handle) -> None:
        if self.full:
            raise OSError(28, "No space left on device")
        super().sync(handle)


def test_a_disk_that_is_full_at_the_stop_is_an_exit_code_and_not_a_traceback(tmp_path: Path) -> None:
    disk = FullDisk()
    log = Log.open(disk, str(tmp_path), SystemClock())
    log.create_topic("t", 1, {})
    disk.full = True
    process = BrokerProcess(Options(data=str(tmp_path)), LogLines(None, SystemClock()))
    assert process._close(log) == 1
    Log.open(RealDisk(), str(tmp_path), SystemClock()).close()


def test_more_partitions_than_files_that_may_be_open_do_not_fence_the_log(tmp_path: Path) -> None:
    broker = subprocess.Popen(
        [sys.executable, "-m", "headwater.server", "--data", str(tmp_path), "--listen", "127.0.0.1:0"],
        env={**os.environ, "PYTHONPATH": "src"}, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES)),
    )  # fmt: skip
    try:
        until(lambda: read_endpoint(tmp_path), "the broker says where it listens")
        found = read_endpoint(tmp_path)
        assert found is not None
        parts = [PartitionProduceData(index=index, records=records(1)) for index in range(PARTITIONS)]
        topic = TopicProduceData(name="many", partition_data=parts)
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
        with RawConnection(found.address) as client:
            client.ask(create("many", PARTITIONS), CreateTopicsResponse, 7)
            client.ask(request, ProduceResponse, 9)
            until((tmp_path / "log" / f"many-{PARTITIONS - 1}").exists, "the segments are written")
            answers = client.ask(request, ProduceResponse, 9).responses[0].partition_responses
            assert {each.error_code for each in answers} == {0}
    finally:
        broker.terminate()
        _, said = broker.communicate(timeout=20)
    assert (broker.returncode, "fenced" in said) == (0, False)
