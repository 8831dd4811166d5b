"""Every exit code of the guide, by the command line that ends with it; and no traceback for a person's mistake."""
from __future__ import annotations

import re

import pytest

from headwater.cli.root import EXIT_CODES
from tests.any_kafka import ROOT, Kafka, Shell, free_port


def test_the_guide_names_exactly_the_exit_codes_that_there_are() -> None:
    text = (ROOT / "docs/guide/exit-codes.md").read_text()
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == set(EXIT_CODES)


def test_0_done(kafka: Kafka, shell: Shell) -> None:
    shell("topics", "create", kafka.name("t"))


def test_2_usage(shell: Shell) -> None:
    for line in (["topics", "create"], ["consume"], ["consume", "t", "--from", "yesterdayish"], ["nosuch"],
                 ["topics", "lst"], ["groups", "reset", "g"], ["produce", "t", "-X", "novalue", "v"]):
        done = shell(*line, code=2)
        assert done.err.startswith("error: "), done
        assert done.out == ""


def test_2_usage_for_what_the_broker_calls_wrong(kafka: Kafka, shell: Shell) -> None:
    shell("topics", "create", kafka.name("t"), "--set", "retention.ms=soon", code=2)
    shell("topics", "create", "bad/name", code=2)
    shell("topics", "list", "-X", "no.such.option=1", code=2)


def test_3_not_found(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic("visits")
    assert f"Did you mean {topic}?" in shell("consume", topic.replace("visits", "vists"), code=3).err
    for line in (["topics", "describe", "hwtest-none"], ["groups", "describe", "hwtest-none"],
                 ["topics", "delete", "hwtest-none", "--yes"], ["topics", "set", "hwtest-none", "a=b"],
                 ["groups", "delete", "hwtest-none", "--yes"], ["groups", "reset", "hwtest-none", "--to", "earliest"]):
        shell(*line, code=3)


def test_4_conflict(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    shell("topics", "create", topic, code=4)
    shell("topics", "create", topic, "--if-missing", code=0)


@pytest.mark.parametrize("line", [
    ["topics", "list"], ["topics", "create", "t"], ["produce", "t", "v"], ["consume", "t"], ["groups", "list"],
    ["groups", "describe", "g"], ["topics", "describe", "t"], ["groups", "reset", "g", "--to", "earliest"],
])
def test_6_nobody_listens_and_the_line_to_type_is_named(no_broker: Shell, line: list[str]) -> None:
    port = free_port()
    done = no_broker(*line, "--log", f"127.0.0.1:{port}", code=6)
    assert f"headwater broker --data ./data --listen 127.0.0.1:{port}" in done.err
    assert len(done.err.strip().splitlines()) == 1
    done = no_broker(*line, "--log", "./data", code=6)
    assert "headwater broker --data ./data" in done.err


def test_6_the_deadline_passes(no_broker: Shell) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        no_broker("topics", "list", "--log", address, "--timeout", "0.3", code=6)


def test_7_partly_done(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic(max_message_bytes="2000")
    # two batches: the first fits, the second holds a record that the topic refuses
    done = shell("produce", topic, "-X", "batch.num.messages=1", stdin=f"ok\n{'x' * 5000}\n", code=7)
    assert "1 record acknowledged" in done.err
    assert "max.message.bytes" in done.err


def test_a_bug_is_a_paragraph_and_the_place_of_its_traceback(no_broker: Shell) -> None:
    import os
    import subprocess
    import sys

    from tests.any_kafka import environment

    code = (
        "import headwater.cli.version as v, sys; from headwater.cli import main\n"
        "v.collect = lambda: 1 / 0\n"
        "sys.exit(main(['version']))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    found = re.search(r"The traceback is in (\S+);", done.stderr)
    assert found is not None
    with open(found.group(1)) as file:
        assert "ZeroDivisionError" in file.read()
    os.unlink(found.group(1))
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment(HEADWATER_DEBUG="1"), capture_output=True, text=True, check=False
    )
    assert "Traceback" in shown.stderr
