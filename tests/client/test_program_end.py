"""Programs that end, are interrupted, or lose their broker: nothing is lost without a word."""
from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import headwater
from headwater.core.endpoint import read_endpoint
from headwater.core.processes import start_broker
from tests.any_kafka import Kafka, environment, ours, wait_for


def program(code: str, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", f"import headwater, sys\n{code}", *arguments], env=environment(), cwd=cwd, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )


APPEND = """
log = headwater.open(sys.argv[1])
for number in range(5):
    log.append(sys.argv[2], str(number))
"""


def test_what_was_appended_arrives_though_the_program_ends_at_once(kafka: Kafka) -> None:
    topic = kafka.topic()
    ended = program(APPEND, kafka.address, topic)
    assert ended.communicate(timeout=50) == ("", "")
    assert kafka.values(topic) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_log_that_nobody_holds_any_more_delivers_too(kafka: Kafka) -> None:
    topic = kafka.topic()
    ended = program("headwater.open(sys.argv[1]).append(sys.argv[2], 'one')", kafka.address, topic)
    assert ended.communicate(timeout=50) == ("", "")
    assert kafka.values(topic) == [b"one"]


@ours
def test_a_directorys_broker_gets_what_its_program_appended_last(tmp_path: Path) -> None:
    ended = program(APPEND, "./data", "t", cwd=tmp_path)
    assert ended.communicate(timeout=50) == ("", "")
    with headwater.open(tmp_path / "data") as log:
        assert [record.text for record in log.read("t", until="latest")] == ["0", "1", "2", "3", "4"]


def test_a_forked_child_does_not_deliver_its_parents_records(kafka: Kafka) -> None:
    topic = kafka.topic()
    code = APPEND + "import os\nif (child := os.fork()) == 0: sys.exit(0)\nassert os.waitpid(child, 0)[1] == 0\n"
    ended = program(code, kafka.address, topic)
    _, err = ended.communicate(timeout=50)
    assert "headwater:" not in err
    assert ended.returncode == 0
    assert kafka.values(topic) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_record_that_was_refused_is_said_at_the_end(kafka: Kafka) -> None:
    topic = kafka.topic(max_message_bytes="1000")
    ended = program("log = headwater.open(sys.argv[1])\nlog.append(sys.argv[2], 'x' * 5000)", kafka.address, topic)
    out, err = ended.communicate(timeout=50)
    assert out == ""
    assert "a record was refused" in err
    assert "max.message.bytes" in err


@ours
def test_records_that_cannot_be_delivered_at_the_end_are_counted_on_stderr(tmp_path: Path) -> None:
    code = """
import headwater.client.writer as writer
writer.EXIT_SECONDS = 0.5
log = headwater.open(sys.argv[1])
log.append("t", "before").wait()
print("ready", flush=True)
sys.stdin.readline()
log.append("t", "after"); log.append("t", "after")
"""
    with start_broker(tmp_path) as broker:
        ended = subprocess.Popen(
            [sys.executable, "-c", f"import headwater, sys\n{code}", broker.address], env=environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        assert ended.stdout is not None
        assert ended.stdout.readline() == "ready\n"
        broker.kill()
        _, err = ended.communicate("go\n", timeout=50)
    assert "2 records may be lost" in err
    assert ".result()" in err
    assert "Traceback" not in err


@ours
@pytest.mark.parametrize("what", [
    "for record in log.read('t'): print(record.text, flush=True)",
    "print('one', flush=True)\nwhile True: log.append('t', 'x').wait()",
])
def test_ctrl_c_is_a_keyboard_interrupt_while_the_broker_is_gone(tmp_path: Path, what: str) -> None:
    code = f"""
import headwater.client.writer as writer
writer.EXIT_SECONDS = 0.1
log = headwater.open(sys.argv[1])
log.append("t", "one").wait()
try:
    {what.replace(chr(10), chr(10) + "    ")}
except KeyboardInterrupt:
    print("interrupted")
"""
    for _ in range(3):  # it depended on the moment
        with start_broker(tmp_path / "data") as broker, program(code, broker.address) as running:
            assert running.stdout is not None
            assert running.stdout.readline() == "one\n"
            broker.kill()
            with pytest.raises(subprocess.TimeoutExpired):
                running.wait(1.5)  # librdkafka has now something to say
            running.send_signal(signal.SIGINT)
            out, err = running.communicate(timeout=20)
        assert out.endswith("interrupted\n"), err
        assert "SystemError" not in err


@ours
def test_a_log_whose_broker_died_says_what_to_do_and_can_be_opened_again(tmp_path: Path) -> None:
    log = headwater.open(tmp_path, timeout=1)
    log.append("t", "acknowledged").wait()
    endpoint = read_endpoint(tmp_path)
    assert endpoint is not None
    subprocess.run(["kill", "-9", str(endpoint.pid)], check=True)
    wait_for(lambda: not endpoint.is_alive())
    with pytest.raises(headwater.Unavailable) as raised:
        log.append("t", "lost").wait()
    assert "open it again" in str(raised.value)
    assert "--timeout" not in str(raised.value)
    with pytest.raises(headwater.Unavailable, match="open it again"):
        log.topics.all()
    assert "suppressed" not in str(raised.value)
    with contextlib.suppress(headwater.Unavailable):
        log.close()  # whether librdkafka has given the record up by now is its business
    with headwater.open(tmp_path) as again:
        assert [record.text for record in again.read("t", until="latest")] == ["acknowledged"]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "9092", "kafka.example.com", "localhost:", ":9092"])
def test_a_host_without_its_port_is_refused_rather_than_made_a_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(headwater.UsageError, match=r":9092"):
        headwater.open(name)
    assert list(tmp_path.iterdir()) == []


def test_a_partition_that_is_not_there_is_named_with_those_that_are(kafka: Kafka) -> None:
    topic = kafka.topic(partitions=2)
    with headwater.open(kafka.address) as log:
        with pytest.raises(headwater.NotFound, match=r"no partition 7\. Its partitions are 0 to 1"):
            log.append(topic, "x", partition=7).wait()
        log.append(topic, "known now", partition=1).wait()
        with pytest.raises(headwater.NotFound, match=r"no partition 7\. Its partitions are 0 to 1"):
            log.append(topic, "x", partition=7).wait()


def test_a_value_of_a_wrong_type_names_the_type(kafka: Kafka) -> None:
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError, match="its type is int"):
        log.append("any", 5)  # type: ignore[arg-type]
