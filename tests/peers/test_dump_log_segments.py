"""Apache Kafka's own dump tool reads every file that our log leaves at rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.core import processes
from tests.peers.apache_kafka import missing, run_tool
from tests.peers.conftest import need

KINDS = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@pytest.fixture(scope="module")
def at_rest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with several segments, transactions, aborts and groups, cleanly stopped."""
    need(missing())
    data = tmp_path_factory.mktemp("at-rest") / "data"
    broker = processes.start_broker(data)
    config = {"segment.bytes": "1048576", "segment.index.bytes": "4096"}
    admin = AdminClient({"bootstrap.servers": broker.address})
    for made in admin.create_topics([NewTopic("kept", 1, config=config)]).values():
        made.result(30)
    producer = Producer({"bootstrap.servers": broker.address, "transactional.id": "keeper", "linger.ms": 5})
    producer.init_transactions(30)
    for turn in range(12):
        producer.begin_transaction()
        for _ in range(500):
            producer.produce("kept", os.urandom(1000), key=b"k", headers={"h": b"v"})
        producer.flush(30)  # an abort purges what has not been sent
        (producer.abort_transaction if turn % 3 == 2 else producer.commit_transaction)(30)
    broker.stop()
    return data / "log"


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_a_kind_is_read(at_rest: Path, kind: str) -> None:
    files = sorted(str(path) for path in at_rest.rglob(f"*{kind}") if path.stat().st_size)
    assert files, f"no {kind} file was written"
    options = ["--verify-index-only"] if kind in (".index", ".timeindex") else []
    done = run_tool("DumpLogSegments", *options, "--files", ",".join(files), seconds_max=300)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    for complaint in (
        "Mismatches",
        "out of order",
        "Exception",
        "isvalid: false",
        "crc mismatch",
        "not found",
    ):
        assert complaint not in said, said[-3000:]


def test_records_come_back_as_they_were_written(at_rest: Path) -> None:
    files = sorted(str(path) for path in (at_rest / "kept-0").glob("*.log"))
    assert len(files) > 3
    done = run_tool("DumpLogSegments", "--deep-iteration", "--files", ",".join(files), seconds_max=300)
    assert done.stdout.count("keySize: 1 valueSize: 1000") == 12 * 500
    assert done.stdout.count("endTxnMarker: COMMIT") == 8
    assert done.stdout.count("endTxnMarker: ABORT") == 4


def test_the_offsets_and_transactions_topics_decode(at_rest: Path) -> None:
    states = sorted(str(path) for path in at_rest.glob("__transaction_state-*/*.log") if path.stat().st_size)
    done = run_tool("DumpLogSegments", "--transaction-log-decoder", "--files", ",".join(states))
    assert "keeper" in done.stdout
