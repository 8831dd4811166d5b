"""The whole broker as a real child process: what clients, operators and crashes see."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from headwater.core.endpoint import read_endpoint
from headwater.core.errors import Conflict, UsageError
from headwater.core.processes import LOG_FILE, BrokerProcess, start_broker
from headwater.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headwater.wire.messages.fetch import FetchResponse
from headwater.wire.messages.produce import ProduceResponse
from tests.peers.raw import RawConnection
from tests.peers.requests import fetch_from, produce_to
from tests.server.load import Writer, create_topic, lost, records, values
from tests.server.running import until

LOOPS = ["uvloop", "asyncio"]


def run_server(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater.server", *arguments], capture_output=True, text=True, timeout=30,
        env={**os.environ, "PYTHONPATH": "src"}, check=False,
    )  # fmt: skip


def ask_versions(address: str) -> ApiVersionsResponse:
    with RawConnection(address) as connection:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        return connection.ask(request, ApiVersionsResponse, 3)


def log_text(broker: BrokerProcess) -> str:
    return (broker.data / LOG_FILE).read_text()


@pytest.mark.parametrize("loop", LOOPS)
def test_a_broker_answers_as_soon_as_it_says_that_it_is_ready(loop: str, tmp_path: Path) -> None:
    with start_broker(tmp_path, loop=loop) as broker:
        assert ask_versions(broker.address).error_code == 0
        found = read_endpoint(tmp_path)
        assert found is not None
        assert (found.address, found.pid, found.owner) == (broker.address, broker.pid, "owner")
        assert found.is_alive()
    assert read_endpoint(tmp_path) is None, "a clean stop takes the endpoint away"


@pytest.mark.parametrize("loop", LOOPS)
def test_what_was_written_is_read_back_also_after_a_restart(loop: str, tmp_path: Path) -> None:
    with start_broker(tmp_path, loop=loop) as broker:
        create_topic(broker.address, "t")
        with RawConnection(broker.address) as connection:
            for number in range(10):
                request = produce_to("t", records(3, value=b"v%d" % number))
                answer = connection.ask(request, ProduceResponse, 9)
                assert answer.responses[0].partition_responses[0].base_offset == 3 * number
        before = values(broker.address, "t")
        assert len(before) == 30
        assert broker.stop() == 0
    with start_broker(tmp_path, loop=loop) as broker:
        assert values(broker.address, "t") == before


def test_pipelined_produce_requests_are_appended_in_their_order(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        create_topic(broker.address, "t")
        with RawConnection(broker.address) as connection:
            for number in range(200):
                connection.send(produce_to("t", records(1, value=b"%d" % number)), 9)
            answers = [connection.receive(ProduceResponse, 9) for _ in range(200)]
        offsets = [answer.responses[0].partition_responses[0].base_offset for answer in answers]
        assert offsets == list(range(200))
        assert values(broker.address, "t") == [b"%d-0" % number for number in range(200)]


def test_without_acks_there_is_no_answer_and_the_record_is_there(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        create_topic(broker.address, "t")
        with RawConnection(broker.address) as connection:
            connection.send(produce_to("t", records(1, value=b"silent"), acks=0), 9)
            answer = connection.ask(produce_to("t", records(1, value=b"loud")), ProduceResponse, 9)
            assert answer.responses[0].partition_responses[0].base_offset == 1
        assert values(broker.address, "t") == [b"silent-0", b"loud-0"]


def test_a_long_poll_is_woken_by_a_write_on_another_connection(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        create_topic(broker.address, "t")
        with RawConnection(broker.address) as reader, RawConnection(broker.address) as writer:
            reader.send(fetch_from("t", max_wait_ms=20_000, min_bytes=1), 12)
            writer.ask(produce_to("t", records(1, value=b"news")), ProduceResponse, 9)
            answer = reader.receive(FetchResponse, 12)
            assert answer.responses[0].partitions[0].records


def test_a_long_poll_with_nothing_to_read_ends_at_its_deadline(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        create_topic(broker.address, "t")
        with RawConnection(broker.address) as reader:
            answer = reader.ask(fetch_from("t", max_wait_ms=100, min_bytes=1), FetchResponse, 12)
            assert not answer.responses[0].partitions[0].records


def test_garbage_leaves_one_line_no_traceback_and_other_clients_alone(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        with RawConnection(broker.address) as good:
            for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"\0\0\0\x0a" + b"\xff" * 10):
                with RawConnection(broker.address) as bad:
                    bad.send_bytes(garbage)
                    assert bad.is_closed_by_peer(), garbage
            request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
            assert good.ask(request, ApiVersionsResponse, 3).error_code == 0
        events = [json.loads(line)["event"] for line in log_text(broker).splitlines()]
        assert events.count("connection-refused") == 3
        assert "Traceback" not in log_text(broker)


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        with pytest.raises(Conflict) as refused:
            start_broker(tmp_path)
        assert str(tmp_path) in str(refused.value)
        assert ask_versions(broker.address).error_code == 0, "the first does not mind"
        assert read_endpoint(tmp_path).pid == broker.pid  # type: ignore[union-attr]


def test_a_port_in_use_is_named_with_what_to_type(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict, match=f"port {port} is in use.*--listen 127.0.0.1:0"):
            start_broker(tmp_path, listen=f"127.0.0.1:{port}")


@pytest.mark.parametrize("address", ["0.0.0.0:0", ":0", "[::]:0"])
def test_an_open_address_needs_a_word_of_consent(address: str, tmp_path: Path) -> None:
    done = run_server("--data", str(tmp_path / "d"), "--listen", address)
    assert done.returncode == 2
    assert "--insecure-listen" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "d").exists(), "nothing was touched"


def test_with_consent_an_open_address_serves_and_advertises_what_the_client_used(tmp_path: Path) -> None:
    from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse

    with start_broker(tmp_path, listen="0.0.0.0:0", insecure_listen=True) as broker:
        with RawConnection(broker.address) as connection:
            (node,) = connection.ask(MetadataRequest(topics=[]), MetadataResponse, 1).brokers
        assert f"{node.host}:{node.port}" == broker.address


def test_clients_are_told_the_advertised_address(tmp_path: Path) -> None:
    from headwater.wire.messages.metadata import MetadataRequest, MetadataResponse

    with start_broker(tmp_path, advertise="kafka.example:19093") as broker:
        with RawConnection(broker.address) as connection:
            (node,) = connection.ask(MetadataRequest(topics=[]), MetadataResponse, 1).brokers
        assert (node.host, node.port) == ("kafka.example", 19093)


@pytest.mark.parametrize(
    "arguments", [["--lsten", "x:1"], ["--listen"], ["--listen", "nowhere"], ["--set", "a"], ["--mode", "mine"]]
)
def test_a_wrong_command_line_is_a_sentence_and_exit_code_2(arguments: list[str], tmp_path: Path) -> None:
    done = run_server("--data", str(tmp_path / "d"), *arguments)
    assert done.returncode == 2
    assert arguments[0].lstrip("-") in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_setting_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"num\.partitions"):
        start_broker(tmp_path, settings={"num.partition": "3"})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_the_broker_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        os.kill(broker.pid, number)
        assert broker.wait(15) == 0
        assert read_endpoint(tmp_path) is None
        assert number.name in log_text(broker)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_stop_during_load_keeps_everything_acknowledged(loop: str, tmp_path: Path) -> None:
    with start_broker(tmp_path, loop=loop) as broker:
        create_topic(broker.address, "t")
        writers = [Writer(broker.address, "t", f"w{number}") for number in range(8)]
        for writer in writers:
            writer.start()
        until(lambda: all(len(writer.acknowledged) > 50 for writer in writers))
        assert broker.stop() == 0
        for writer in writers:
            writer.end()
    with start_broker(tmp_path, loop=loop) as broker:
        assert lost(values(broker.address, "t"), writers) == []


def test_a_kill_during_load_keeps_everything_acknowledged_every_time(tmp_path: Path) -> None:
    writers: list[Writer] = []
    for round_number in range(4):
        with start_broker(tmp_path) as broker:
            create_topic(broker.address, "t", 2)
            here = [
                Writer(broker.address, "t", f"{round_number}.{number}", partition=number % 2) for number in range(4)
            ]
            for writer in here:
                writer.start()
            until(lambda: all(len(writer.acknowledged) > 30 for writer in here))  # noqa: B023
            broker.kill()
            for writer in here:
                writer.end()
            writers += here
    with start_broker(tmp_path) as broker:
        present = values(broker.address, "t", 0) + values(broker.address, "t", 1)
        assert lost(present, writers) == []
        assert len(present) == len(set(present)), "nothing is there twice"


def test_a_second_signal_cuts_the_stop_short(tmp_path: Path) -> None:
    with start_broker(tmp_path) as broker:
        create_topic(broker.address, "t")
        with RawConnection(broker.address) as greedy:
            for _ in range(40):
                greedy.ask(produce_to("t", records(1, value=b"x" * 900_000)), ProduceResponse, 9)
            for _ in range(4):  # answers of 30 MB that nobody takes: the stop waits for them
                greedy.send(fetch_from("t", max_bytes=50 << 20, partition_max_bytes=50 << 20), 12)
            process = psutil.Process(broker.pid)
            os.kill(broker.pid, signal.SIGTERM)
            until(lambda: '"stopping"' in log_text(broker))
            assert process.is_running()
            os.kill(broker.pid, signal.SIGTERM)
            assert broker.wait(5) == 130
    with start_broker(tmp_path) as broker:
        assert len(values(broker.address, "t")) == 40


@pytest.mark.parametrize("loop", LOOPS)
def test_connections_that_come_and_go_leave_the_broker_as_it_was(loop: str, tmp_path: Path) -> None:
    with start_broker(tmp_path, loop=loop) as broker:
        ask_versions(broker.address)
        process = psutil.Process(broker.pid)
        until(lambda: len(process.net_connections("tcp")) == 1, "only the listening socket is left")
        before = process.num_fds()
        for _ in range(200):
            ask_versions(broker.address)
        until(lambda: process.num_fds() == before, "every file is closed again")


def test_a_stock_client_writes_and_a_group_reads(tmp_path: Path) -> None:
    from confluent_kafka import Consumer, Producer

    with start_broker(tmp_path) as broker:
        producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5})
        failed: list[object] = []
        for number in range(2000):
            producer.produce("t", b"%d" % number, on_delivery=lambda error, _: error and failed.append(error))
        assert producer.flush(20) == 0
        assert not failed
        consumer = Consumer(
            {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        try:
            consumer.subscribe(["t"])
            found: list[int] = []
            until(lambda: found.extend(int(m.value()) for m in consumer.consume(500, 0.1)) or len(found) >= 2000)
            assert found == list(range(2000))
        finally:
            consumer.close()


@pytest.mark.parametrize("loop", LOOPS)
def test_when_files_run_out_those_who_are_connected_go_on_and_others_come_later(loop: str, tmp_path: Path) -> None:
    with start_broker(tmp_path, loop=loop) as broker, RawConnection(broker.address) as connected:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        connected.ask(request, ApiVersionsResponse, 3)
        _, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (psutil.Process(broker.pid).num_fds() + 2, hard))
        host, _, port = broker.address.partition(":")
        others = [socket.create_connection((host, int(port))) for _ in range(20)]
        for _ in range(50):
            assert connected.ask(request, ApiVersionsResponse, 3).error_code == 0
        for other in others:
            other.close()
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (4096, hard))
        until(lambda: ask_versions(broker.address).error_code == 0)
        assert len(log_text(broker).splitlines()) < 20


def test_the_first_failed_write_fences_the_log_and_says_so(tmp_path: Path) -> None:
    """The journal is not allowed to write beyond its first 4 KB: the system answers EFBIG, as a bad disk would EIO."""
    with start_broker(tmp_path) as broker:
        create_topic(broker.address, "t")
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        writer = Writer(broker.address, "t", "w")
        writer.start()
        until(lambda: len(writer.refused) > 5, "writes are refused from then on")
        writer.end()
        assert set(writer.refused) == {56}, "KAFKA_STORAGE_ERROR"
        assert ask_versions(broker.address).error_code == 0, "it still answers"
        present = values(broker.address, "t")
        assert lost(present, [writer]) == [], "and what was acknowledged can be read"
        resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert '"fenced"' in log_text(broker)
        assert broker.stop() == 1
    with start_broker(tmp_path) as broker:
        assert lost(values(broker.address, "t"), [writer]) == []


def test_start_and_rest_are_cheap(tmp_path: Path) -> None:
    """The goals are 0.15 s and 60 MB; a shared machine gets some air for the first."""
    import time

    start_broker(tmp_path).stop()  # byte code is compiled, pages are warm
    fastest = 9.9
    for _ in range(3):
        began = time.monotonic()
        with start_broker(tmp_path) as broker:
            fastest = min(fastest, time.monotonic() - began)
            megabytes = psutil.Process(broker.pid).memory_info().rss / 2**20
            assert megabytes <= 60
    assert fastest <= 0.4
