"""The tests: a folder per layer of src, tests/peers for other people's software; run.py runs them."""
