-- name: remove_session
DELETE FROM sessions WHERE id = ? AND user = ?;

-- name: remove_words
DELETE FROM words WHERE session = ?;

-- name: remove_marks
DELETE FROM marks WHERE session = ?;

-- name: remove_quarantine
DELETE FROM quarantine WHERE session = ?;

-- name: remove_outcomes
DELETE FROM push_outcomes WHERE session = ?;

-- name: insert_tombstone
INSERT INTO tombstones (session, user, deleted_ms, emptied) VALUES (?, ?, ?, 0);

-- name: remove_events
DELETE FROM events
WHERE rowid IN (SELECT rowid FROM events WHERE session = ? ORDER BY seq LIMIT ?);

-- name: note_emptied
UPDATE tombstones SET emptied = 1 WHERE session = ?;

-- name: find_tombstone
SELECT deleted_ms FROM tombstones WHERE session = ? AND user = ? AND deleted_ms > ?;

-- name: list_unfinished
SELECT session FROM tombstones WHERE emptied = 0;

-- name: prune_tombstones
DELETE FROM tombstones WHERE deleted_ms <= ? AND emptied = 1;
