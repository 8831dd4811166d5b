"""What somebody meets who types this for the first time: orders of output, full disks, slips, second brokers."""
from __future__ import annotations

import json
import os
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import headwater
from headwater.cli.options import as_typed
from headwater.core.endpoint import read_endpoint
from headwater.core.processes import start_broker
from tests.any_kafka import Kafka, Shell, command_line, environment, free_port, ours, wait_for
from tests.cli.test_broker import running
from tests.cli.test_terminal import on_terminal

full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")


def test_data_comes_before_the_talk_about_it_when_both_go_to_one_place(kafka: Kafka, shell: Shell) -> None:
    assert "PYTHONUNBUFFERED" not in environment()
    topic, group = kafka.topic(), kafka.name("g")
    done = shell.bash(f"headwater groups reset {group} {topic} --to earliest 2>&1 | cat")
    assert done.out.index("TOPIC") < done.out.index("Add --yes")


@full
def test_a_full_disk_is_one_sentence(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    kafka.fill(topic, ["x" * 1000] * 100)
    for line in (f"consume {topic} --exit-at-end", "topics list", "--help", "topics --help", "version", "topics"):
        done = shell.bash(f"headwater {line} >/dev/full")
        assert done.code == 1, (line, done)
        assert done.err == "error: cannot write to standard output: No space left on device.\n", line


@ours
@full
def test_a_demonstration_on_a_full_disk_is_one_sentence(no_broker: Shell) -> None:
    done = no_broker.bash("headwater demo --seconds 1 >/dev/full")
    assert (done.code, done.err) == (1, "error: cannot write to standard output: No space left on device.\n")


@ours
def test_ctrl_c_while_the_broker_is_gone_is_silence(tmp_path: Path) -> None:
    with start_broker(tmp_path / "data") as broker:
        with headwater.open(broker.address) as log:
            log.append("t", "one").wait()
        shell = Shell(broker.address, tmp_path)
        with shell.start("consume", "t") as reading:
            assert reading.stdout is not None and reading.stderr is not None
            assert reading.stdout.readline() == b"one\n"
            broker.kill()
            assert b"is away" in reading.stderr.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                reading.wait(1)  # librdkafka has something to say meanwhile
            reading.send_signal(signal.SIGINT)
            assert reading.wait(20) == 130
            assert reading.stderr.read() == b""


@ours
def test_a_reading_says_once_that_the_broker_went_and_once_that_it_is_back(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with start_broker(data) as broker:
        address = broker.address
        with headwater.open(address) as log:
            log.append("t", "one").wait()
        with Shell(address, tmp_path).start("consume", "t") as reading:
            assert reading.stdout is not None and reading.stderr is not None
            assert reading.stdout.readline() == b"one\n"
            broker.kill()
            assert reading.stderr.readline().startswith(f"the broker at {address} is away".encode())
            with start_broker(data, listen=address):
                assert reading.stderr.readline() == f"the broker at {address} is back\n".encode()
                with headwater.open(address) as log:
                    log.append("t", "two").wait()
                assert reading.stdout.readline() == b"two\n"
                reading.send_signal(signal.SIGINT)
                assert reading.wait(20) == 130
                assert reading.stderr.read() == b""


@ours
def test_a_second_broker_is_told_of_the_first(no_broker: Shell) -> None:
    port = free_port()
    with running(no_broker, "--listen", f"127.0.0.1:{port}") as first:
        for listen in (port, 0):
            done = no_broker("broker", "--listen", f"127.0.0.1:{listen}", code=4, env={"PYTHONWARNINGS": ""})
            said = json.loads(done.err)["message"]
            assert f"headwater already runs on ./data at 127.0.0.1:{port} (pid {first.pid})" in said
    with start_broker() as other:  # another directory: then the port is what matters
        done = no_broker("broker", "--listen", other.address, code=4, env={"PYTHONWARNINGS": ""})
        assert "in use by another program" in done.err


@ours
def test_a_start_after_a_kill_says_in_plain_words_that_nothing_is_missing(no_broker: Shell) -> None:
    with running(no_broker) as broker:
        no_broker("produce", "t", "one")
        broker.kill()
        broker.wait()
        (no_broker.directory / "data" / "endpoint").unlink()
    with running(no_broker) as broker:
        assert broker.stderr is not None
        said = json.loads(broker.stderr.readline())
    assert said["event"] == "recovered"
    assert said["message"].startswith("the last stop was not clean; everything acknowledged is there (checked in ")
    assert "bytes" not in said["message"] or said["cut_bytes"]


def test_a_port_alone_is_answered_with_the_address_to_type(no_broker: Shell) -> None:
    done = no_broker("broker", "--listen", "9393", code=2)
    assert "Did you mean --listen 127.0.0.1:9393?" in done.err


def test_examples_name_the_command_and_leave_paths_alone(no_broker: Shell) -> None:
    shown = no_broker("broker", "--help", env={"HEADWATER_COMMAND": "./hw"}).out
    assert "./hw broker --data /var/lib/headwater --listen" in shown
    for verb in ("produce", "consume", "groups reset", "topics set", "demo", "version"):
        assert "headwater " not in no_broker(*verb.split(), "--help", env={"HEADWATER_COMMAND": "./hw"}).out
    assert as_typed("seq 10 | headwater produce t") == "seq 10 | headwater produce t"


@pytest.mark.parametrize("noun", ["topics", "groups"])
def test_a_noun_alone_shows_its_help_as_the_command_does(no_broker: Shell, noun: str) -> None:
    alone = no_broker(noun)
    assert alone.out == no_broker(noun, "--help").out
    assert alone.err == ""
    assert no_broker().out == no_broker("--help").out


def test_deleting_what_is_not_there_speaks_of_deleting(kafka: Kafka, shell: Shell) -> None:
    for more in ([], ["--yes"]):
        done = shell("topics", "delete", "qqqqqq", *more, code=3)
        assert done.err.startswith("error: cannot delete topic qqqqqq")
        assert "create" not in done.err


def test_a_move_beyond_the_log_is_said_with_where_it_ends(kafka: Kafka, shell: Shell) -> None:
    topic, group = kafka.topic(), kafka.name("g")
    kafka.fill(topic, ["a", "b"])
    done = shell("groups", "reset", group, f"{topic}:0", "--to", "99")
    assert f"{topic}:0 has no offset 99: it ends at 2, which is taken" in done.err
    assert f"There is no group {group} yet: it would be made." in done.err
    line = json.loads(shell("groups", "reset", group, f"{topic}:0", "--to", "99", "--json", "--yes").out)
    assert (line["after"], line["asked"]) == (2, 99)
    done = shell("groups", "reset", group, "--shift", "-5", "--yes")
    assert f"{topic}:0 has no offset -3: it begins at 0, which is taken" in done.err
    assert f"moved {group} on 1 partition\n" in done.err


def test_a_group_that_is_not_there_is_made_and_it_is_said(kafka: Kafka, shell: Shell) -> None:
    topic, group = kafka.topic(partitions=2), kafka.name("g")
    done = shell("groups", "reset", group, topic, "--to", "earliest", "--yes")
    assert done.err == f"made group {group} with offsets on 2 partitions\n"
    done = shell("groups", "reset", f"{group}x", "--to", "earliest", code=3)
    assert f"Did you mean {group}?" in done.err


@pytest.mark.parametrize("name", ["bad/name", "with space", "ü", "x" * 250, ".."])
def test_a_name_that_no_topic_can_have_is_refused_before_anything_is_sent(shell: Shell, name: str) -> None:
    done = shell("produce", name, "v", code=2)
    assert "letters a-z and A-Z, digits, dot, underscore and hyphen" in done.err
    assert "is asked to make it" not in done.err
    assert "digits, dot" in shell("topics", "create", name, code=2).err


def test_a_misspelt_setting_of_a_new_topic_gets_a_suggestion(kafka: Kafka, shell: Shell) -> None:
    done = shell("topics", "create", kafka.name("t"), "--set", "retention=5", code=2)
    assert "Did you mean retention.ms?" in done.err


def test_numbers_are_called_numbers(no_broker: Shell) -> None:
    assert "'x' is not a valid whole number" in no_broker("consume", "t", "-n", "x", code=2).err
    assert "'x' is not a valid number" in no_broker("demo", "--seconds", "x", code=2).err
    assert "INTEGER" not in no_broker("topics", "create", "--help").out


def test_one_is_not_a_plural_and_the_address_is_named(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    assert shell("produce", topic, "v").err == f"1 record acknowledged in {topic} at {kafka.address}\n"
    assert shell("produce", topic, "v", "w").err == f"2 records acknowledged in {topic} at {kafka.address}\n"


def test_an_end_before_the_beginning_is_refused(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    for start, until in (("5m", "1h"), ("9", "3"), ("-1", "-5")):
        assert "lies before the beginning" in shell("consume", topic, "--from", start, "--until", until, code=2).err
    with headwater.open(kafka.address) as log, pytest.raises(headwater.UsageError, match="before the beginning"):
        log.read(topic, start=datetime.now(UTC), until=datetime.now(UTC) - timedelta(hours=1))


def test_a_group_prints_what_is_there_before_it_says_that_it_waits(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic(partitions=3)
    kafka.fill(topic, ["a", "b", "c"])
    with on_terminal(shell, "consume", topic, "--group", kafka.name("g")) as terminal:
        shown = terminal.until(b"waiting for new records")
        assert sorted(shown.split()[:3]) == [b"a", b"b", b"c"]
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130


def test_ctrl_c_while_typing_says_how_many_lines_were_acknowledged(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    with subprocess.Popen(
        command_line("produce", topic), env=environment(kafka.address), cwd=shell.directory, stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as writing:
        assert writing.stdin is not None and writing.stderr is not None
        writing.stdin.write(b"x\ny\n")
        writing.stdin.flush()
        wait_for(lambda: kafka.values(topic) == [b"x", b"y"])
        writing.send_signal(signal.SIGINT)
        assert writing.wait(20) == 130
        assert writing.stderr.read().decode() == f"2 records acknowledged in {topic} at {kafka.address}\n"


@ours
def test_the_address_of_the_directory_stays_after_a_refused_second_broker(no_broker: Shell) -> None:
    with running(no_broker):
        before = read_endpoint(no_broker.directory / "data")
        no_broker("broker", "--listen", "127.0.0.1:0", code=4, env={"PYTHONWARNINGS": ""})
        assert read_endpoint(no_broker.directory / "data") == before
