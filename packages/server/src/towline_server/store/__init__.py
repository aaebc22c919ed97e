"""What keeps the log: one writer, dense numbers, nothing seen before it is durable."""
