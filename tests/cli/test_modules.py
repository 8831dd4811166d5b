"""What each verb loads: a wall against slow starts and against layers that a verb must not know."""
from __future__ import annotations

import json
import subprocess
import sys

import pytest

from headwater.cli.root import VERBS
from tests.any_kafka import Kafka, Shell, environment, free_port

SHOW = """
import json, sys
from headwater.cli import main
sys.stdout = sys.stderr
code = main(json.loads(sys.argv[1]))
print(json.dumps(sorted(sys.modules)), file=sys.__stdout__)
"""
BROKER_SIDE = ("headwater.broker", "headwater.log", "headwater.server")
HEAVY = ("confluent_kafka", "asyncio", "uvloop", "rich", "msgspec", "cramjam", "importlib.metadata")


def modules(*arguments: str, log: str | None = None) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", SHOW, json.dumps(arguments)], capture_output=True, text=True, env=environment(log),
        check=False, timeout=60,
    )
    return set(json.loads(done.stdout))


def loaded(found: set[str], names: tuple[str, ...]) -> set[str]:
    return {name for name in found if any(name == one or name.startswith(f"{one}.") for one in names)}


def test_help_loads_no_verb_and_nothing_heavy() -> None:
    found = modules("--help")
    verbs = {target.partition(":")[0] for _, target, _ in VERBS.values()}
    assert not found & verbs
    assert not loaded(found, HEAVY + BROKER_SIDE)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_help_of_a_verb_loads_only_that_verb(verb: str) -> None:
    found = modules(verb, "--help")
    verbs = {target.partition(":")[0] for _, target, _ in VERBS.values()}
    assert found & verbs == {VERBS[verb][1].partition(":")[0]}
    assert not loaded(found, HEAVY + BROKER_SIDE)


@pytest.mark.parametrize("line", [
    ["topics", "list"], ["groups", "list"], ["consume", "hwtest-none"], ["produce", "hwtest-none", "--json"],
])
def test_verbs_that_speak_the_protocol_never_load_the_broker(kafka: Kafka, line: list[str]) -> None:
    found = modules(*line, log=kafka.address)
    assert "confluent_kafka" in found
    assert not loaded(found, BROKER_SIDE)


def test_a_verb_without_a_broker_fails_before_librdkafka_is_loaded() -> None:
    assert not loaded(modules("topics", "list", "--log", f"127.0.0.1:{free_port()}"), HEAVY + BROKER_SIDE)


def test_the_broker_never_loads_a_client() -> None:
    # an address that is not this machine's: it ends as soon as everything is loaded
    found = modules("broker", "--listen", "192.0.2.1:1", "--insecure-listen")
    assert "headwater.server.app" in found
    assert not loaded(found, ("confluent_kafka", "headwater.client.librdkafka", "rich"))


def test_version_names_every_part(no_broker: Shell) -> None:
    found = json.loads(no_broker("version", "--json").out)
    assert found["record kernel"] in ("C", "Python")
    assert set(found) == {"headwater", "python", "platform", "record kernel", "librdkafka", "confluent-kafka"}
    pure = json.loads(no_broker("version", "--json", env={"HEADWATER_PURE": "1"}).out)
    assert pure["record kernel"] == "Python"
    assert "librdkafka" in no_broker("version").out
