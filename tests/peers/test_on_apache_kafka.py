"""What stands above the broker is a Kafka client: its tests run once more, with Apache Kafka as the broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.apache_kafka import ApacheKafka

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["stock_clients", "client", "cli"])
def test_the_tests_of_a_folder_pass_on_apache_kafka(folder: str, kafka: ApacheKafka) -> None:
    command = [sys.executable, "-m", "pytest", f"tests/{folder}", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    environment = os.environ | {"HEADWATER_TEST_KAFKA": kafka.address}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout.splitlines()[-1]
