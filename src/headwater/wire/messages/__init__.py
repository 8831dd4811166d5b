"""One module per API, with its request, its response and their structs, under Kafka's names in snake case.

`offsets_topic` and `transaction_state` hold the records of Kafka's internal topics instead. Importing this
package imports none of them: the classes of an API are found by its key when they are first asked for.
"""

from __future__ import annotations

from headwater.wire.schema import schema_of

APIS = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    28: "txn_offset_commit",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    42: "delete_groups",
    44: "incremental_alter_configs",
    47: "offset_delete",
    60: "describe_cluster",
    61: "describe_producers",
    65: "describe_transactions",
    66: "list_transactions",
    74: "list_config_resources",
    75: "describe_topic_partitions",
}

_found: dict[tuple[int, str], type] = {}


def request_class(api_key: int) -> type | None:
    """The request of this API, or None if it is not one of ours."""
    return _found.get((api_key, "Request")) or _find(api_key, "Request")


def response_class(api_key: int) -> type | None:
    """The response of this API, or None if it is not one of ours."""
    return _found.get((api_key, "Response")) or _find(api_key, "Response")


def _find(api_key: int, kind: str) -> type | None:
    name = APIS.get(api_key)
    if name is None:
        return None
    module = __import__(f"{__name__}.{name}", fromlist=["*"])
    cls: type = getattr(module, name.title().replace("_", "") + kind)
    assert schema_of(cls).key == api_key, (api_key, cls)
    _found[api_key, kind] = cls
    return cls
