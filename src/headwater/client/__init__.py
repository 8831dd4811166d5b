"""The friendly client: append, read, transactions and administration over librdkafka, on any Kafka.

Nothing is imported here: `headwater.open` and the verbs name the module that they need.
"""
