"""The command line of the child process."""

from __future__ import annotations

import pytest

from headwater.core.errors import UsageError
from headwater.server.options import parse


def test_every_option_has_both_forms() -> None:
    words = ["--data", "d", "--listen=h:1", "--set", "a=b=c", "--set=x=y", "--ready-fd", "5", "--insecure-listen"]
    options = parse(words)
    assert (options.data, options.listen, options.ready_fd, options.insecure_listen) == ("d", "h:1", 5, True)
    assert options.settings == {"a": "b=c", "x": "y"}


def test_the_environment_may_choose_the_loop_and_the_command_line_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_LOOP", "asyncio")
    assert parse([]).loop == "asyncio"
    assert parse(["--loop", "uvloop"]).loop == "uvloop"


WRONG = [["--what"], ["data"], ["--data"], ["--ready-fd", "x"], ["--loop", "fast"], ["--set", "x"]]


@pytest.mark.parametrize("words", WRONG)
def test_what_is_not_understood_is_refused_by_name(words: list[str]) -> None:
    with pytest.raises(UsageError, match=words[0].lstrip("-")):
        parse(words)
