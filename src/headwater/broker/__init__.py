"""Kafka's broker as pure state machines: no await, no socket, no thread, no clock of its own.

``dispatch.respond`` is the door: one request frame in, the pieces of one answer out, at once or later.
"""
