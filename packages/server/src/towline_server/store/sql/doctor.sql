-- What `towline doctor` asks and changes. Rows are walked by SQLite's own numbers, since any column
-- may be damaged.

-- name: count_sessions
SELECT count(*) FROM sessions;

-- name: page_sessions
SELECT rowid, id FROM sessions NOT INDEXED WHERE rowid > ? ORDER BY rowid LIMIT ?;

-- name: find_user
SELECT user FROM sessions WHERE id = ? AND typeof(user) = 'text';

-- name: find_user_elsewhere
SELECT user FROM marks WHERE session = ?1
UNION ALL SELECT user FROM usage WHERE session = ?1
UNION ALL SELECT user FROM file_uses WHERE session = ?1
LIMIT 1;

-- name: find_words
SELECT folded FROM words WHERE session = ?;

-- name: raw_events
SELECT rowid, seq, turn, time_ms, data, private FROM events WHERE session = ? ORDER BY seq;

-- name: raw_event
SELECT rowid, seq, turn, time_ms, data, private, session FROM events WHERE rowid = ?;

-- name: raw_session
SELECT * FROM sessions WHERE rowid = ?;

-- name: newest_event
SELECT max(updated_ms) FROM sessions WHERE typeof(updated_ms) = 'integer';

-- name: newest_model
SELECT model FROM sessions WHERE model != '' ORDER BY updated_ms DESC LIMIT 1;

-- name: orphan_sessions
SELECT DISTINCT session FROM events
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = events.session)
  AND NOT EXISTS (
    SELECT 1 FROM tombstones WHERE tombstones.session = events.session AND tombstones.emptied = 0
  );

-- name: page_orphans
SELECT rowid FROM events NOT INDEXED
WHERE rowid > ?
  AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = events.session)
  AND NOT EXISTS (SELECT 1 FROM tombstones WHERE tombstones.session = events.session)
ORDER BY rowid LIMIT ?;

-- name: has_events
SELECT count(*) FROM events WHERE session = ?;

-- name: has_event
SELECT 1 FROM events WHERE session = ? AND seq = ?;

-- name: move_event
UPDATE events SET session = ?, seq = ? WHERE rowid = ?;

-- name: drop_event
DELETE FROM events WHERE rowid = ?;

-- name: drop_session
DELETE FROM sessions WHERE rowid = ?;

-- name: keep_apart
INSERT INTO quarantine (found_ms, place, session, seq, reason, data, private)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: count_apart
SELECT count(*) FROM quarantine;

-- name: make_mended
CREATE TEMP TABLE mended (
  seq INTEGER PRIMARY KEY, turn TEXT, time_ms INTEGER NOT NULL, data BLOB NOT NULL, private BLOB
);

-- name: clear_mended
DELETE FROM temp.mended;

-- name: add_mended
INSERT INTO temp.mended (seq, turn, time_ms, data, private) VALUES (?, ?, ?, ?, ?);

-- name: drop_events
DELETE FROM events WHERE session = ?;

-- name: take_mended
INSERT INTO events (session, seq, turn, time_ms, data, private)
SELECT ?, seq, turn, time_ms, data, private FROM temp.mended ORDER BY seq;

-- name: find_tombstone_of
SELECT emptied FROM tombstones WHERE session = ?;

-- name: count_buried
SELECT count(*) FROM tombstones WHERE emptied = 0;

-- name: count_undead
SELECT count(*) FROM tombstones
WHERE EXISTS (SELECT 1 FROM sessions WHERE sessions.id = tombstones.session);

-- name: drop_undead
DELETE FROM tombstones
WHERE EXISTS (SELECT 1 FROM sessions WHERE sessions.id = tombstones.session);

-- name: note_unemptied
UPDATE tombstones SET emptied = 0 WHERE session = ?;

-- name: count_left_words
SELECT count(*) FROM words
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = words.session);

-- name: drop_left_words
DELETE FROM words
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = words.session);

-- name: count_left_marks
SELECT count(*) FROM marks
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = marks.session);

-- name: drop_left_marks
DELETE FROM marks
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = marks.session);

-- name: count_far_marks
SELECT count(*) FROM marks JOIN sessions ON sessions.id = marks.session
WHERE marks.seq > sessions.last_seq;

-- name: pull_far_marks
UPDATE marks SET seq = (SELECT last_seq FROM sessions WHERE sessions.id = marks.session)
WHERE seq > (SELECT last_seq FROM sessions WHERE sessions.id = marks.session);

-- name: count_files
SELECT count(*) FROM files WHERE file IS NOT NULL;

-- name: page_files
SELECT place, file, size FROM files WHERE place > ? AND file IS NOT NULL ORDER BY place LIMIT ?;

-- name: file_pieces
SELECT number, data FROM file_pieces WHERE place = ? ORDER BY number;

-- name: has_file
SELECT 1 FROM files WHERE file = ?;

-- name: is_unnoted
SELECT 1 FROM file_owners AS o WHERE o.file = ?1 AND o.user = ?2 AND NOT EXISTS (
  SELECT 1 FROM file_uses AS u WHERE u.session = ?3 AND u.file = o.file
);

-- name: add_use
INSERT INTO file_uses (session, file, user) VALUES (?, ?, ?);

-- name: drop_file_uses
DELETE FROM file_uses WHERE file = ?;

-- name: drop_file_owners
DELETE FROM file_owners WHERE file = ?;

-- name: count_old_answers
SELECT count(*) FROM idempotency WHERE created_ms < ?;
