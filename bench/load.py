"""Load on a broker from a process of its own; one JSON line out.

    python -m bench.load WORK ADDRESS TOPIC OPTION=VALUE…

    requests    the same Produce request again and again on each of N connections, one in flight on each
    fetch       one connection reads a topic from its start, an answer at a time
    librdkafka  a stock producer sends records of 1 KB in big batches
Frames are built once; an answer is only looked at for its length and its first error code.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
import time
from typing import Any

from headwater.wire import batch, frame
from headwater.wire.messages import fetch, metadata, produce

RECORD_BYTES = 1000
PRODUCE_VERSION, FETCH_VERSION = 9, 12


def connect(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    made = socket.create_connection((host, int(port)), timeout=60)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def ask(link: socket.socket, request: Any, response: type, version: int) -> Any:
    link.sendall(b"".join(frame.encode_request(request, version, 1, "bench")))
    return frame.decode_response(response, version, memoryview(receive(link)))[1]


def receive(link: socket.socket) -> bytearray:
    head = exactly(link, bytearray(4))
    return exactly(link, bytearray(struct.unpack(">i", head)[0]))


def exactly(link: socket.socket, into: bytearray) -> bytearray:
    view, got = memoryview(into), 0
    while got < len(into):
        more = link.recv_into(view[got:])
        if not more:
            raise ConnectionError("the broker closed the connection")
        got += more
    return into


def produce_frame(topic: str, partitions: list[int], records: int) -> bytes:
    value = bytes(RECORD_BYTES)
    made = batch.build([batch.Record(n, int(time.time() * 1000), None, value, ()) for n in range(records)])
    parts = [produce.PartitionProduceData(index=number, records=bytes(made)) for number in partitions]
    request = produce.ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[produce.TopicProduceData(name=topic, partition_data=parts)]
    )
    return b"".join(frame.encode_request(request, PRODUCE_VERSION, 1, "bench"))


def requests(
    address: str, topic: str, connections: int, partitions: int, seconds: float, spread: int = 4
) -> dict[str, Any]:
    """`partitions` in each request; with one, the connections spread over `spread` partitions."""
    selector = selectors.DefaultSelector()
    for number in range(connections):
        link = connect(address)
        places = [number % spread] if partitions == 1 else list(range(partitions))
        data = produce_frame(topic, places, 1)
        link.sendall(data)
        selector.register(link, selectors.EVENT_READ, [data, time.perf_counter(), link, bytearray()])
    taken: list[float] = []
    begin = time.perf_counter()
    end = begin + seconds
    while (now := time.perf_counter()) < end:
        for key, _ in selector.select(1.0):
            state = key.data
            state[3] += state[2].recv(1 << 16)
            if len(state[3]) < 4 or len(state[3]) < 4 + int.from_bytes(state[3][:4], "big"):
                continue
            now = time.perf_counter()
            taken.append(now - state[1])
            state[1], state[3] = now, bytearray()
            state[2].sendall(state[0])
    taken.sort()
    spent = now - begin
    return {
        "rate": len(taken) / spent,
        "records": len(taken) * partitions,
        "seconds": spent,
        "p50_ms": taken[len(taken) // 2] * 1000,
        "p99_ms": taken[len(taken) * 99 // 100] * 1000,
    }


def fetches(address: str, topic: str, megabytes: int, answer_bytes: int) -> dict[str, Any]:
    """Reads from offset 0; stops at the size asked for or at the end of the topic."""
    link, offset, total = connect(address), 0, 0
    begin = time.perf_counter()
    while total < megabytes << 20:
        part = fetch.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=answer_bytes)
        request = fetch.FetchRequest(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=answer_bytes,
            topics=[fetch.FetchTopic(topic=topic, partitions=[part])],
        )
        answer = ask(link, request, fetch.FetchResponse, FETCH_VERSION)
        records = answer.responses[0].partitions[0].records
        if not records:
            break
        total += len(records)
        for _, header in batch.headers(memoryview(records)):
            offset = header.next_offset
    spent = time.perf_counter() - begin
    return {"rate": total / spent / 1e6, "bytes": total, "seconds": spent}


def librdkafka(address: str, topic: str, megabytes: int, batch_bytes: int = 1_000_000) -> dict[str, Any]:
    from confluent_kafka import Producer

    producer = Producer({
        "bootstrap.servers": address, "linger.ms": 20, "batch.size": batch_bytes, "acks": "all",
        "queue.buffering.max.messages": 200_000, "queue.buffering.max.kbytes": 400_000,
        "message.max.bytes": batch_bytes + 100_000,
    })  # fmt: skip
    value, count = bytes(RECORD_BYTES), (megabytes << 20) // RECORD_BYTES
    begin = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(120)
    spent = time.perf_counter() - begin
    return {
        "rate": count * RECORD_BYTES / spent / 1e6,
        "bytes": count * RECORD_BYTES,
        "seconds": spent,
        "left": left,
    }


def partitions_of(address: str, topic: str) -> int:
    request = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
    with connect(address) as link:
        return len(ask(link, request, metadata.MetadataResponse, 9).topics[0].partitions)


WORKS = {"requests": requests, "fetch": fetches, "librdkafka": librdkafka}


def main(arguments: list[str]) -> int:
    work, address, topic, *options = arguments
    named = {
        name: float(value) if "." in value else int(value)
        for name, _, value in (o.partition("=") for o in options)
    }
    print(json.dumps(WORKS[work](address, topic, **named)))  # type: ignore[operator]
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
