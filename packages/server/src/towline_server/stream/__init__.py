"""From the log to the readers: live fan-out, replay from a cursor, and the way onto the wire."""
