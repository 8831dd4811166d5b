"""One Kafka API per file, named after it. A handler holds no state and is called on the loop only."""
