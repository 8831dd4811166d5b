"""Verbs as Unix tools: real pipes, real signals, exact bytes, on any Kafka."""
from __future__ import annotations

import json
import random
import signal
import subprocess

import pytest

import headwater
from tests.any_kafka import Kafka, Shell


def test_a_sequence_goes_in_and_comes_out(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    done = shell.bash(f"seq 1000 | headwater produce {topic} && headwater consume {topic} --exit-at-end")
    assert done.out.split() == [str(number) for number in range(1, 1001)]
    assert done.err == f"1000 records acknowledged in {topic} at {kafka.address}\n"
    assert done.code == 0


def test_the_first_records_make_the_topic_where_the_broker_makes_topics(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.name("new")
    done = shell("produce", topic, stdin="a\n")
    assert "is not there yet" in done.err
    assert shell("consume", topic, "--exit-at-end").out == "a\n"


def test_head_ends_a_reading_quietly(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    kafka.fill(topic, [str(number) for number in range(20_000)])
    done = shell.bash(f"set -o pipefail; headwater consume {topic} | head -3")
    assert (done.code, done.out, done.err) == (0, "0\n1\n2\n", "")


def test_a_closed_pipe_ends_a_reading_that_waits(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    kafka.fill(topic, ["only one"])
    with shell.start("consume", topic) as reading:
        assert reading.stdout is not None
        assert reading.stdout.readline() == b"only one\n"
        reading.stdout.close()
        assert reading.wait(20) == 0
        assert reading.stderr is not None
        assert reading.stderr.read() == b""


def test_a_record_reaches_the_next_program_of_a_pipe_at_once(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    with shell.start("consume", topic) as reading, headwater.open(kafka.address) as log:
        assert reading.stdout is not None
        for number in range(3):
            log.append(topic, f"n{number}").wait()
            assert reading.stdout.readline() == f"n{number}\n".encode()
        reading.send_signal(signal.SIGINT)
        assert reading.wait(20) == 130


def test_ctrl_c_ends_with_130_while_it_waits_for_input(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    with shell.start("produce", topic, stdin=subprocess.PIPE) as writing, headwater.open(kafka.address) as log:
        assert writing.stdin is not None
        writing.stdin.write(b"x\n")
        writing.stdin.flush()
        assert next(log.read(topic, timeout=20)).text == "x"
        writing.send_signal(signal.SIGINT)
        assert writing.wait(20) == 130
        writing.stdin.close()


def test_bytes_of_every_kind_survive_json_out_and_in(kafka: Kafka, shell: Shell) -> None:
    source, copy = kafka.topic("a"), kafka.topic("b")
    chance = random.Random(7)
    contents: list[bytes | None] = [
        b"", None, b"plain", "grün 🌊".encode(), b"\xff\xfe\x00", b'{"id": 9007199254740993}', b"line\nbreak\ttab\r",
        b"\xed\xa0\x80", b'"', b"\\", b"\xef\xbf\xbd", *(chance.randbytes(20) for _ in range(50)),
    ]
    with headwater.open(kafka.address) as log:
        for content in contents:
            log.append(source, content, key=content, headers=[("h", content), ("ü", b"\x80")])
        log.flush()
        shell.bash(f"headwater consume {source} --json --exit-at-end | headwater produce {copy} --json")
        original = list(log.read(source, until="latest"))
        copied = list(log.read(copy, until="latest"))
    assert [record.value for record in original] == contents
    assert [(record.key, record.value, record.headers) for record in copied] == [
        (record.key, record.value, record.headers) for record in original
    ]


def test_place_and_time_can_be_kept_in_a_copy(kafka: Kafka, shell: Shell) -> None:
    source, copy = kafka.topic("a", partitions=3), kafka.topic("b", partitions=3)
    with headwater.open(kafka.address) as log:
        for partition in range(3):
            log.append(source, f"{partition}", partition=partition, timestamp=1_700_000_000_000 + partition)
        log.flush()
        done = shell.bash(
            f"headwater consume {source} --json --exit-at-end | headwater produce {copy} --json --keep-place"
        )
        assert done.code == 0, done
        found = sorted((record.partition, record.timestamp, record.text) for record in log.read(copy, until="latest"))
    assert found == [(number, 1_700_000_000_000 + number, str(number)) for number in range(3)]


def test_numbers_of_64_bits_stay_exact_in_json(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    line = '{"key":"k","value":{"id":9223372036854775807,"price":1.10},"timestamp":1700000000000}'
    shell("produce", topic, "--json", "--keep-place", stdin=line + "\n")
    found = json.loads(shell("consume", topic, "--json", "--exit-at-end").out)
    assert found == {
        "topic": topic, "partition": 0, "offset": 0, "timestamp": 1_700_000_000_000, "key": "k",
        "value": '{"id":9223372036854775807,"price":1.10}',
    }


def test_keys_tombstones_headers_and_partitions_are_written(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic(partitions=2)
    shell("produce", topic, "--key", "k", "--header", "a=b=c", "--partition", "1", "v1", "v2")
    shell("produce", topic, "--key", "k", "--tombstone", "--partition", "1")
    shell("produce", topic, "--key-separator", "=", "--partition", "0", stdin="x=1=2\ny=\n")
    shell("produce", topic, "--tombstone", "--partition", "0", "--timestamp", "@1700000000", stdin="z\n")
    with headwater.open(kafka.address) as log:
        records = list(log.read(topic, until="latest"))
    in_one = [(record.key, record.value, record.headers) for record in records if record.partition == 1]
    in_zero = [(record.key, record.value) for record in records if record.partition == 0]
    header = [("a", b"b=c")]
    assert in_one == [(b"k", b"v1", header), (b"k", b"v2", header), (b"k", None, [])]
    assert in_zero == [(b"x", b"1=2"), (b"y", b""), (b"z", None)]
    assert [record.timestamp for record in records if record.key == b"z"] == [1_700_000_000_000]


@pytest.mark.parametrize("options, expected", [
    (["--from", "2"], "2 3 4"), (["--from", "-2"], "3 4"), (["--from", "end"], ""), (["--from", "@1700000003"], "3 4"),
    (["--from", "2023-11-14T22:13:21Z", "--until", "2023-11-14T22:13:23Z"], "1 2"), (["-n", "2"], "0 1"),
    (["--from", "10m"], ""), (["--until", "3"], "0 1 2"), (["-n", "0"], ""),
])
def test_a_range_is_read(kafka: Kafka, shell: Shell, five: str, options: list[str], expected: str) -> None:
    end = [] if "--until" in options else ["--exit-at-end"]
    assert shell("consume", five, *options, *end).out.split() == expected.split()


@pytest.fixture(scope="module")
def five(kafka: Kafka) -> str:
    topic = kafka.topic()
    with headwater.open(kafka.address, options={"enable.idempotence": "false"}) as log:
        for number in range(5):
            log.append(topic, str(number), key=f"k{number}", timestamp=(1_700_000_000 + number) * 1000)
    return topic


def test_fields_are_chosen(shell: Shell, five: str) -> None:
    done = shell("consume", five, "--fields", "partition,offset,timestamp,key,value", "-n", "1")
    assert done.out == "0\t0\t1700000000000\tk0\t0\n"


def test_a_group_remembers_what_it_has_printed(kafka: Kafka, shell: Shell, five: str) -> None:
    group = kafka.name("g")
    assert shell("consume", five, "--group", group, "-n", "2").out.split() == ["0", "1"]
    assert shell("consume", five, "--group", group, "--exit-at-end").out.split() == ["2", "3", "4"]


def test_a_malformed_line_is_named_and_what_came_before_it_counted(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    done = shell("produce", topic, "--json", stdin='{"value":"ok"}\n{"valu":"typo"}\n', code=7)
    assert "line 2 is not a record" in done.err
    assert "1 record acknowledged" in done.err
    done = shell("produce", topic, "--json", stdin="not json\n", code=2)
    assert "line 1" in done.err
    done = shell("produce", topic, "--key-separator", ":", stdin="no colon\n", code=2)
    assert "line 1 has no ':'" in done.err
    assert kafka.values(topic) == [b"ok"]


def test_empty_lines_and_a_missing_last_newline_are_data(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    shell("produce", topic, stdin=b"a\n\n \r\nlast")
    assert kafka.values(topic) == [b"a", b"", b" \r", b"last"]


def test_records_of_open_transactions_are_shown_only_when_asked(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    with headwater.open(kafka.address) as log, pytest.raises(KeyError), log.transaction() as transaction:
        transaction.append(topic, "aborted").wait()
        raise KeyError
    assert shell("consume", topic, "--exit-at-end").out == ""
    assert shell("consume", topic, "--exit-at-end", "--uncommitted").out == "aborted\n"
