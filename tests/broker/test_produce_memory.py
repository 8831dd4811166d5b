"""What an accepted batch keeps in memory after its request is answered."""

from __future__ import annotations

from headwater.wire import batch
from headwater.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.conftest import Client, World

MIB = 1 << 20


def test_a_small_batch_does_not_keep_its_large_request_in_memory(world: World, client: Client) -> None:
    client.create("t")
    small = batch.build([(None, b"value")], now_ms=world.clock.wall_ms())
    parts = [PartitionProduceData(index=0, records=small), PartitionProduceData(index=7, records=bytes(MIB))]
    request = ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=parts)]
    )
    answer = client.ask(request, 9)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [0, 3]
    (kept,) = world.log.topics["t"].partitions[0].tail.views
    assert len(memoryview(kept).obj) < 1024  # type: ignore[arg-type]
