"""Benches: each compares with its peers in the same run and prints its conditions."""
