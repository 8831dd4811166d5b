"""Errors that teach: what is said when nobody listens, when it is not Kafka, when an option is wrong."""
from __future__ import annotations

import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import headwater
from headwater.client.address import is_servers, resolve
from tests.any_kafka import Kafka, environment, free_port


def test_nothing_listening_is_unavailable_with_the_line_that_starts_a_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HEADWATER_COMMAND", raising=False)
    port = free_port()
    with pytest.raises(headwater.Unavailable) as raised, headwater.open(f"127.0.0.1:{port}"):
        pass
    assert f"headwater broker --data ./data --listen 127.0.0.1:{port}" in str(raised.value)
    assert raised.value.exit_code == 6


def test_a_listener_that_is_silent_is_unavailable_after_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with headwater.open(address, timeout=0.5) as log, pytest.raises(headwater.Unavailable, match=address):
            log.topics.all()


def test_a_listener_that_is_not_kafka_is_told_apart_from_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.close()

        threading.Thread(target=hang_up, daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with headwater.open(address, timeout=1) as log, pytest.raises(headwater.Unavailable) as raised:
            log.topics.all()
        server.shutdown(socket.SHUT_RDWR)
    assert "Disconnected" in str(raised.value)


def test_an_option_that_librdkafka_does_not_know_is_a_usage_error(kafka: Kafka) -> None:
    log = headwater.open(kafka.address, options={"no.such.option": "1"})
    with pytest.raises(headwater.UsageError, match=r"no\.such\.option"):
        log.topics.all()


@pytest.mark.parametrize("text, is_address", [
    ("127.0.0.1:9092", True), ("kafka-1:9092,kafka-2:9092", True), ("[::1]:9092", True), ("./data", False),
    ("data", False), ("/var/lib/headwater", False), ("host:", False), ("C:\\data", False), ("PLAINTEXT://h:1", True),
])
def test_an_address_is_told_apart_from_a_directory(text: str, is_address: bool) -> None:
    assert is_servers(text) is is_address


def test_without_log_the_broker_of_the_data_directory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEADWATER_LOG", raising=False)
    assert resolve(None).servers == "127.0.0.1:9092"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "endpoint").write_text('{"address": "127.0.0.1:5555", "pid": 1, "owner": "own"}')
    assert resolve(None).servers == "127.0.0.1:5555"
    assert resolve("data").servers == "127.0.0.1:5555"
    monkeypatch.setenv("HEADWATER_LOG", "kafka:9")
    assert resolve(None).servers == "kafka:9"
    assert resolve("other:1").servers == "other:1"


def test_importing_and_opening_load_no_librdkafka() -> None:
    code = (
        "import sys, headwater\n"
        "loaded = {name.partition('.')[0] for name in sys.modules if not name.startswith('_')}\n"
        "assert 'typing' not in loaded and 'confluent_kafka' not in loaded, loaded\n"
        "assert [name for name in sys.modules if name.startswith('headwater')] == ['headwater']\n"
        "log = headwater.open('127.0.0.1:1')\n"
        "assert 'confluent_kafka' not in sys.modules and 'asyncio' not in sys.modules\n"
        "for name in headwater.__all__: getattr(headwater, name)\n"
        "assert 'confluent_kafka' not in sys.modules\n"
        "try: headwater.nothing\n"
        "except AttributeError: pass\n"
        "else: raise SystemExit('no AttributeError')\n"
    )
    path = f"import sys; sys.path.insert(0, {environment()['PYTHONPATH']!r})\n"
    subprocess.run([sys.executable, "-I", "-c", path + code], check=True, env=environment())
