"""Ours or any Kafka: see tests/any_kafka.py."""
from __future__ import annotations

from tests.any_kafka import kafka, no_broker, shell

__all__ = ["kafka", "no_broker", "shell"]
