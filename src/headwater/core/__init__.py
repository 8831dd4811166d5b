"""What every layer may use: clock, disk, ids, errors, log position, child processes. Knows nothing of Kafka."""
