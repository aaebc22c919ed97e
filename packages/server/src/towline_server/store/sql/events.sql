-- name: insert_event
INSERT INTO events (session, seq, turn, time_ms, data, private) VALUES (?, ?, ?, ?, ?, ?);

-- name: read_events
SELECT seq, turn, time_ms, data, private FROM events
WHERE session = ? AND seq > ? AND seq <= ?
ORDER BY seq LIMIT ?;
