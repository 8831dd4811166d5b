"""What a person sees: verbs on a real pseudo-terminal."""
from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import headwater
from tests.any_kafka import DEADLINE_SECONDS, Kafka, Shell, command_line, environment


class Terminal:
    """A program on a terminal, and what it has shown so far."""

    def __init__(self, process: subprocess.Popen[bytes], screen: int) -> None:
        self.process = process
        self.screen = screen
        self.shown = b""

    def until(self, text: bytes) -> bytes:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while text not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if not self.more():
                assert text in self.shown, self.shown
        return self.shown

    def more(self) -> bool:
        if not select.select([self.screen], [], [], 0.1)[0]:
            return True
        try:
            piece = os.read(self.screen, 65536)
        except OSError:
            return False  # the program is gone
        self.shown += piece
        return bool(piece)

    def end(self) -> int:
        while self.process.poll() is None:
            self.more()
        while select.select([self.screen], [], [], 0)[0] and self.more():
            pass
        return self.process.returncode


@contextmanager
def on_terminal(shell: Shell, *arguments: str, **more: str) -> Iterator[Terminal]:
    mine, its = pty.openpty()
    process = subprocess.Popen(
        command_line(*arguments), stdin=its, stdout=its, stderr=its, cwd=shell.directory, start_new_session=True,
        env=environment(shell.log, TERM="xterm", **more),
    )
    os.close(its)
    try:
        yield Terminal(process, mine)
    finally:
        process.kill()
        process.wait()
        os.close(mine)


def test_a_person_is_told_that_it_waits_and_ctrl_c_ends_it(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    kafka.fill(topic, ["one"])
    with on_terminal(shell, "consume", topic) as terminal:
        shown = terminal.until(b"waiting for new records, Ctrl-C to stop, --exit-at-end")
        assert shown.startswith(b"one\r\n")
        with headwater.open(kafka.address) as log:
            log.append(topic, "two")
        terminal.until(b"two\r\n")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
        assert b"Traceback" not in terminal.shown


def test_escapes_in_a_record_do_not_reach_the_terminal_unless_asked(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    kafka.fill(topic, [b"\x1b]0;owned\x07\x1b[2J\xff"], key=b"\x1b[2J")
    for form in (["--plain"], ["--json"], ["--fields", "key,value"]):
        with on_terminal(shell, "consume", topic, "--exit-at-end", *form) as terminal:
            assert terminal.end() == 0
            assert b"\x1b" not in terminal.shown
            assert b"\x07" not in terminal.shown
    with on_terminal(shell, "consume", topic, "--exit-at-end", "--raw") as terminal:
        assert terminal.end() == 0
        assert terminal.shown.startswith(b"\x1b]0;owned\x07")


def test_colour_is_used_on_a_terminal_but_not_with_no_color(kafka: Kafka, shell: Shell) -> None:
    topic = kafka.topic()
    with on_terminal(shell, "topics", "describe", topic) as terminal:
        assert terminal.end() == 0
        assert b"\x1b[" in terminal.shown
    with on_terminal(shell, "topics", "describe", topic, NO_COLOR="1") as terminal:
        assert terminal.end() == 0
        assert b"\x1b" not in terminal.shown
