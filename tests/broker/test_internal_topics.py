"""Keys belong to partitions as Apache Kafka computes them: its files and ours must agree for ever."""

from __future__ import annotations

import pytest

from headwater.broker.groups.protocols import coordinator_order, elect
from headwater.broker.internal_topics import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("abc", 96354),
        ("Straße", -1808122922),
        ("polygenelubricants", -2147483648),
        ("\U0001f600", 1772899),
        ("__consumer_offsets", -970371369),
    ],
)
def test_a_key_is_hashed_as_java_hashes_strings(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_smallest_hash_goes_to_partition_0_because_it_has_no_absolute_value_in_java() -> None:
    assert partition_for("polygenelubricants", 50) == 0


def test_a_negative_hash_counts_by_its_absolute_value() -> None:
    assert partition_for("Straße", 50) == 1808122922 % 50


def test_a_tied_vote_goes_to_the_protocol_that_comes_first_in_a_java_hash_map() -> None:
    assert elect(["roundrobin", "range"]) == elect(["range", "roundrobin"])
    assert elect(["range", "roundrobin", "roundrobin"]) == "roundrobin"


def test_groups_are_answered_by_partition_in_the_order_that_was_seen_at_apache_kafka() -> None:
    assert coordinator_order(["gp-3354b1", "nix", "", "a", "h"], 8) == ["", "h", "nix", "gp-3354b1", "a"]
