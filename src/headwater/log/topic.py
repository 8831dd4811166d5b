"""A topic: a name, an id that is never used again, settings, partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.log.partition import Partition
    from headwater.log.topic_config import TopicSettings


class Topic:
    """`config` holds the overrides only; `settings` what they and the defaults come to."""

    __slots__ = ("config", "deleted", "name", "partitions", "settings", "topic_id")

    def __init__(self, name: str, topic_id: bytes, config: dict[str, str], settings: TopicSettings) -> None:
        self.name = name
        self.topic_id = topic_id
        self.config = config
        self.settings = settings
        self.partitions: list[Partition] = []
        self.deleted = False

    def __repr__(self) -> str:
        return f"Topic({self.name!r}, partitions={len(self.partitions)})"
