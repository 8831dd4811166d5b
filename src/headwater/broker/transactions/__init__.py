"""Transactions: producer ids, fencing, atomic ends. ``Transactions`` is the coordinator."""

from __future__ import annotations

from headwater.broker.transactions.coordinator import Transactions

__all__ = ["Transactions"]
