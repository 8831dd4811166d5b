"""Connections with real sockets: order, limits, misbehaving clients; on both event loops."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

import pytest

from headwater.server.frames import STEP_BYTES
from headwater.server.kafka_listener import Limits
from headwater.wire.schema import Malformed
from tests.server.running import Client, Running, echo, framed, until

PRODUCE = b"\0\0"
FETCH = b"\0\1"


@pytest.fixture(params=["uvloop", "asyncio"])
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Held:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, Callable[..., None]]] = []
        self.peers: list[Any] = []

    def __call__(self, frame: memoryview, peer: Any, deliver: Callable[..., None]) -> None:
        self.requests.append((bytes(frame), deliver))
        self.peers.append(peer)

    def answer(self, broker: Running, index: int, *pieces: bytes, close: bool = False) -> None:
        frame, deliver = self.requests[index]
        broker.call(lambda: deliver(list(pieces) or [framed(frame)], close))


def test_a_request_is_answered_wherever_it_is_cut(loop: str) -> None:
    stream = framed(b"first") + framed(b"second!")
    with Running(loop=loop) as broker:
        for cut in range(1, len(stream)):
            with broker.client() as client:
                client.send(stream[:cut])
                until(lambda: sum(c.bytes_in for c in list(broker.listener.connections)) == cut)  # noqa: B023
                client.send(stream[cut:])
                assert [client.answer(), client.answer()] == [b"first", b"second!"], cut
            until(lambda: not broker.listener.connections)


def test_large_and_small_requests_mixed_come_back_unchanged(loop: str) -> None:
    payloads = [os.urandom(size) for size in (1, 300_000, 5, 70_000, 2_000_000, 262_140, 12)]
    with Running(loop=loop) as broker:
        client = broker.client()
        for payload in payloads:
            assert client.ask(payload) == payload


@pytest.mark.parametrize("size", [-1, 0, (100 << 20) + 1, 2**31 - 1, -(2**31)])
def test_an_absurd_length_closes_the_connection_with_one_line(size: int, loop: str) -> None:
    with Running(loop=loop) as broker:
        good, bad = broker.client(), broker.client()
        assert good.ask(b"before") == b"before"
        bad.send(struct.pack(">i", size) + b"garbage")
        assert bad.is_closed()
        (line,) = broker.said("connection-refused")
        assert str(size) in line["reason"]
        assert good.ask(b"after") == b"after"


def test_a_length_alone_holds_one_step_of_memory(loop: str) -> None:
    with Running(loop=loop) as broker:
        for _ in range(10):
            broker.client().send(struct.pack(">i", 100 << 20))
        until(lambda: sum(c.bytes_in for c in list(broker.listener.connections)) == 40)
        assert broker.budget.taken == 10 * STEP_BYTES


def test_what_cannot_be_decoded_closes_that_connection_only(loop: str) -> None:
    def picky(frame: memoryview, peer: Any, deliver: Any) -> None:
        if frame[0] == 255:
            raise Malformed("count > remaining bytes")
        echo(frame, peer, deliver)

    with Running(picky, loop=loop) as broker:
        good, bad = broker.client(), broker.client()
        bad.send(framed(b"\xff\xff\0\0"))
        assert bad.is_closed()
        assert good.ask(b"after") == b"after"
        (line,) = broker.said("connection-refused")
        assert "API key 65535" in line["reason"]
        assert "count > remaining" in line["reason"]


def test_many_bad_requests_make_few_lines(loop: str) -> None:
    with Running(loop=loop) as broker:
        for _ in range(200):
            with broker.client() as bad:
                bad.send(b"\xff\xff\xff\xff")
                assert bad.is_closed()
        assert len(broker.said("connection-refused")) <= 10


def test_a_fault_of_ours_is_told_once_and_hits_one_connection(loop: str) -> None:
    def broken(frame: memoryview, peer: Any, deliver: Any) -> None:
        if frame[:2] == FETCH:
            raise RuntimeError("planted")
        echo(frame, peer, deliver)

    with Running(broken, loop=loop) as broker:
        good = broker.client()
        for _ in range(20):
            with broker.client() as victim:
                victim.send(framed(FETCH + b"\0\0"))
                assert victim.is_closed()
        assert good.ask(b"after") == b"after"
        (line,) = broker.said("bug")
        assert "planted" in line["traceback"]


def test_consecutive_produce_requests_overlap_and_are_answered_in_order(loop: str) -> None:
    held = Held()
    with Running(held, loop=loop) as broker:
        client = broker.client()
        for number in range(5):
            client.send(framed(PRODUCE + bytes([number])))
        until(lambda: len(held.requests) == 5, "all five have been started")
        for number in (4, 2, 1, 3):
            held.answer(broker, number)
        assert not client.has_answer(), "the first is not answered yet"
        held.answer(broker, 0)
        assert [client.answer()[2] for _ in range(5)] == [0, 1, 2, 3, 4]


def test_other_requests_wait_for_the_one_before_them(loop: str) -> None:
    held = Held()
    kinds = [PRODUCE + b"1", FETCH + b"2", FETCH + b"3", PRODUCE + b"4", PRODUCE + b"5"]
    with Running(held, loop=loop) as broker:
        client = broker.client()
        client.send(b"".join(map(framed, kinds)))
        for started, index in ((1, 0), (2, 1), (3, 2)):
            until(lambda: len(held.requests) >= started)  # noqa: B023
            assert len(held.requests) == started
            held.answer(broker, index)
        until(lambda: len(held.requests) == 5, "the two produce requests run together")
        held.answer(broker, 4)
        held.answer(broker, 3)
        assert [client.answer() for _ in kinds] == kinds


def test_a_long_poll_holds_up_nobody_else(loop: str) -> None:
    held = Held()

    def respond(frame: memoryview, peer: Any, deliver: Any) -> None:
        (held if frame[:2] == FETCH else echo)(frame, peer, deliver)

    with Running(respond, loop=loop) as broker:
        waiting, other = broker.client(), broker.client()
        waiting.send(framed(FETCH) + framed(b"behind"))
        until(lambda: held.requests)
        for _ in range(100):
            assert other.ask(b"hello") == b"hello"
        assert not waiting.has_answer()
        held.answer(broker, 0)
        assert [waiting.answer(), waiting.answer()] == [FETCH, b"behind"]


def test_a_request_without_an_answer_does_not_disturb_the_order(loop: str) -> None:
    def silent(frame: memoryview, peer: Any, deliver: Any) -> None:
        if frame[2:3] == b"0":
            deliver(None)
        else:
            echo(frame, peer, deliver)

    with Running(silent, loop=loop) as broker:
        client = broker.client()
        client.send(framed(PRODUCE + b"0") + framed(PRODUCE + b"1") + framed(PRODUCE + b"0") + framed(PRODUCE + b"2"))
        assert [client.answer(), client.answer()] == [PRODUCE + b"1", PRODUCE + b"2"]


def test_close_after_the_answer_closes_after_the_answer(loop: str) -> None:
    def last(frame: memoryview, peer: Any, deliver: Any) -> None:
        deliver([framed(b"bye")], True)

    with Running(last, loop=loop) as broker:
        client = broker.client()
        client.send(framed(b"one") + framed(b"two"))
        assert client.answer() == b"bye"
        assert client.is_closed()


@pytest.mark.parametrize("count", [1, 99, 100, 101, 3000])
def test_an_answer_of_many_pieces_arrives_whole(count: int, loop: str) -> None:
    def many(frame: memoryview, peer: Any, deliver: Any) -> None:
        pieces = [bytes([number % 256]) * 100 for number in range(count)]
        deliver([struct.pack(">i", 100 * count), *map(memoryview, pieces)])

    with Running(many, loop=loop) as broker:
        answer = broker.client().ask(b"?")
        assert answer == b"".join(bytes([number % 256]) * 100 for number in range(count))


def test_many_requests_in_one_read_are_all_answered(loop: str) -> None:
    with Running(loop=loop) as broker:
        client = broker.client()
        client.send(b"".join(framed(b"%d" % number) for number in range(5000)))
        assert [int(client.answer()) for _ in range(5000)] == list(range(5000))


def test_a_client_that_does_not_read_holds_one_answer_and_nobody_else_up(loop: str) -> None:
    started = 0

    def megabytes(frame: memoryview, peer: Any, deliver: Any) -> None:
        nonlocal started
        if frame[:2] == FETCH:
            started += 1
            deliver([struct.pack(">i", 8 << 20), memoryview(bytes(8 << 20))])
        else:
            echo(frame, peer, deliver)

    with Running(megabytes, loop=loop) as broker:
        stalled, other = broker.client(), broker.client()
        stalled.send(framed(FETCH) * 50)
        until(lambda: started)
        for _ in range(100):
            assert other.ask(b"hello") == b"hello"
        assert started == 1, "the next is not begun before the first has been taken"
        assert broker.call(lambda: sum(c.unsent for c in broker.listener.connections)) <= 8 << 20
        for _ in range(50):
            assert len(stalled.answer()) == 8 << 20


def test_above_the_budget_sockets_are_not_read_and_go_on_when_there_is_room(loop: str) -> None:
    held = Held()
    with Running(held, loop=loop, budget=100_000) as broker:
        first, second, third = broker.client(), broker.client(), broker.client()
        first.send(framed(PRODUCE + b"a" * 60_000))
        until(lambda: len(held.requests) == 1)
        second.send(framed(PRODUCE + b"b" * 60_000))
        until(lambda: broker.budget.contended, "the second waits")
        third.send(framed(PRODUCE + b"c" * 10))
        until(lambda: not all(c._reading for c in list(broker.listener.connections)))
        assert len(held.requests) == 1
        held.answer(broker, 0)
        until(lambda: len(held.requests) == 3)
        assert [frame[2:3] for frame, _ in held.requests] == [b"a", b"b", b"c"]
        held.answer(broker, 1)
        held.answer(broker, 2)
        assert second.answer()[2:3] == b"b"
        assert third.answer()[2:3] == b"c"


def test_several_frames_larger_than_the_budget_all_get_through(loop: str) -> None:
    size = 3 << 20
    with Running(loop=loop, budget=1 << 20) as broker:
        clients = [broker.client() for _ in range(6)]
        for client in clients:
            client.send(struct.pack(">i", size) + b"x" * 500_000)
        until(lambda: broker.budget.contended, "together they want more than there is")
        rest = [threading.Thread(target=client.send, args=(b"x" * (size - 500_000),)) for client in clients]
        for thread in rest:
            thread.start()
        for client in clients:
            assert client.answer() == b"x" * size
        for thread in rest:
            thread.join()


def test_a_half_request_is_closed_at_its_deadline_and_a_slow_one_is_not(loop: str) -> None:
    limits = Limits(half_frame_seconds=0.4, sweep_seconds=0.05)
    with Running(loop=loop, limits=limits) as broker:
        half, quiet = broker.client(), broker.client()
        half.send(struct.pack(">i", 1000) + b"x" * 10)
        slow = broker.client()
        payload = os.urandom(1_500_000)
        slow.send(struct.pack(">i", len(payload)))
        for start in range(0, len(payload), 100_000):
            slow.send(payload[start : start + 100_000])
            seen = broker.listener.loop.time()
            until(lambda: broker.listener.loop.time() > seen + 0.04)  # noqa: B023
        assert slow.answer() == payload, "it was longer than the deadline, but it moved"
        assert half.is_closed()
        assert "not finished" in broker.said("connection-refused")[0]["reason"]
        assert quiet.ask(b"still here") == b"still here", "a client that has begun nothing has no deadline"


def test_who_holds_memory_without_moving_goes_when_others_need_it(loop: str) -> None:
    limits = Limits(half_frame_seconds=60, pressure_seconds=0.2, sweep_seconds=0.05)
    with Running(loop=loop, limits=limits, budget=1 << 20) as broker:
        for _ in range(4):
            broker.client().send(struct.pack(">i", 10 << 20) + b"x" * 600_000)
        until(lambda: broker.budget.contended)
        assert broker.client().ask(b"y" * 300_000) == b"y" * 300_000
        assert "wait for memory" in broker.said("connection-refused")[0]["reason"]


def test_an_idle_connection_is_closed_and_one_that_waits_for_an_answer_is_not(loop: str) -> None:
    held = Held()
    with Running(held, loop=loop, limits=Limits(idle_seconds=0.3, sweep_seconds=0.05)) as broker:
        idle, waiting = broker.client(), broker.client()
        waiting.send(framed(FETCH))
        assert idle.is_closed()
        held.answer(broker, 0)
        assert waiting.answer() == FETCH


def test_when_connections_run_out_those_that_never_asked_make_room(loop: str) -> None:
    limits = Limits(connections_max=4, silent_seconds=0.0)
    with Running(loop=loop, limits=limits) as broker:
        speaking = broker.client()
        assert speaking.ask(b"1") == b"1"
        silent = [broker.client() for _ in range(3)]
        until(lambda: len(broker.listener.connections) == 4)
        assert broker.client().ask(b"2") == b"2"
        assert silent[0].is_closed()
        assert speaking.ask(b"3") == b"3"


def test_beyond_the_most_connections_a_new_one_is_refused(loop: str) -> None:
    with Running(loop=loop, limits=Limits(connections_max=2)) as broker:
        first, second = broker.client(), broker.client()
        assert first.ask(b"1") + second.ask(b"2") == b"12"
        assert broker.client().is_closed()
        assert broker.said("too-many-connections")
        assert first.ask(b"3") == b"3"


def test_a_lost_connection_cancels_what_waited_for_it_and_takes_no_answer(loop: str) -> None:
    held = Held()
    with Running(held, loop=loop) as broker:
        client = broker.client()
        client.send(framed(PRODUCE + b"a" * 1000))
        until(lambda: held.requests)
        cancelled: list[bool] = []
        broker.call(lambda: held.peers[0].on_close.append(lambda: cancelled.append(True)))
        client.close()
        until(lambda: cancelled)
        assert broker.budget.taken == 0
        held.answer(broker, 0)  # by now there is nobody to take it


def test_a_client_that_cuts_the_connection_hard_is_forgotten(loop: str) -> None:
    with Running(loop=loop) as broker:
        for stage in (b"", struct.pack(">i", 100), struct.pack(">i", 100) + b"x" * 50, framed(b"whole")):
            client = Client(broker.address)
            client.send(stage)
            until(lambda: broker.listener.connections)
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            until(lambda: not broker.listener.connections)
        assert not broker.said("bug")


def test_connections_that_come_and_go_leave_no_open_file(loop: str) -> None:
    with Running(loop=loop) as broker:
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(300):
            with Client(broker.address) as client:
                assert client.ask(b"hello") == b"hello"
        until(lambda: len(os.listdir("/proc/self/fd")) == before, "every file is closed")


def test_small_answers_are_not_delayed(loop: str) -> None:
    with Running(loop=loop) as broker:
        client = broker.client()
        client.ask(b"x")
        (connection,) = broker.listener.connections
        transport_socket = connection.transport.get_extra_info("socket")
        assert transport_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_idle_connection_owns_no_buffer(loop: str) -> None:
    with Running(loop=loop) as broker:
        clients = [broker.client() for _ in range(50)]
        assert all(client.ask(b"x" * 100_000) for client in clients)
        until(lambda: broker.budget.taken == 0)
        assert {len(c._reader._buffer) for c in broker.listener.connections} == {0}
