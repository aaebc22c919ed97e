-- name: insert_session
INSERT INTO sessions (
  user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending, queued, closed,
  archived, labels, said_seq, parent, last_line, last_seq, id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: update_session
UPDATE sessions SET
  user = ?, agent = ?, model = ?, mode = ?, title = ?, cwd = ?, created_ms = ?, updated_ms = ?,
  turn = ?, pending = ?, queued = ?, closed = ?, archived = ?, labels = ?, said_seq = ?,
  parent = ?, last_line = ?, last_seq = ?
WHERE id = ? AND last_seq = ?;

-- name: advance_session
UPDATE sessions SET updated_ms = max(updated_ms, ?), last_seq = ? WHERE id = ? AND last_seq = ?;

-- name: get_last_seq
SELECT last_seq FROM sessions WHERE id = ?;

-- name: set_words
INSERT INTO words (session, folded) VALUES (?, ?)
ON CONFLICT (session) DO UPDATE SET folded = excluded.folded;

-- name: get_session
SELECT id, sessions.user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending,
  queued, closed, archived, labels, said_seq, last_seq, coalesce(marks.seq, 0), parent,
  last_line
FROM sessions LEFT JOIN marks ON marks.session = id AND marks.user = sessions.user
WHERE id = ?;

-- name: list_sessions
SELECT id, sessions.user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending,
  queued, closed, archived, labels, said_seq, last_seq, coalesce(marks.seq, 0), parent,
  last_line
FROM sessions LEFT JOIN marks ON marks.session = id AND marks.user = sessions.user
WHERE sessions.user = ? AND archived = ? AND parent IS NULL AND (updated_ms, id) < (?, ?)
ORDER BY updated_ms DESC, id DESC LIMIT ?;

-- name: search_sessions
SELECT id, sessions.user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending,
  queued, closed, archived, labels, said_seq, last_seq, coalesce(marks.seq, 0), parent,
  last_line
FROM sessions LEFT JOIN marks ON marks.session = id AND marks.user = sessions.user
WHERE sessions.user = ? AND archived = ? AND parent IS NULL AND (updated_ms, id) < (?, ?)
  AND (? = '' OR instr(char(10) || labels || char(10), char(10) || ? || char(10)) > 0)
  AND NOT EXISTS (
    SELECT 1 FROM json_each(?) AS word
    WHERE instr(coalesce((SELECT folded FROM words WHERE words.session = sessions.id), ''), word.value) = 0
  )
ORDER BY updated_ms DESC, id DESC LIMIT ?;

-- name: search_needing_sessions
SELECT id, sessions.user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending,
  queued, closed, archived, labels, said_seq, last_seq, coalesce(marks.seq, 0), parent,
  last_line
FROM sessions LEFT JOIN marks ON marks.session = id AND marks.user = sessions.user
WHERE pending > 0 AND sessions.user = ? AND archived = ? AND parent IS NULL
  AND (updated_ms, id) < (?, ?)
  AND (? = '' OR instr(char(10) || labels || char(10), char(10) || ? || char(10)) > 0)
  AND NOT EXISTS (
    SELECT 1 FROM json_each(?) AS word
    WHERE instr(coalesce((SELECT folded FROM words WHERE words.session = sessions.id), ''), word.value) = 0
  )
ORDER BY updated_ms DESC, id DESC LIMIT ?;

-- name: list_open_sessions
SELECT id, sessions.user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending,
  queued, closed, archived, labels, said_seq, last_seq, coalesce(marks.seq, 0), parent,
  last_line
FROM sessions LEFT JOIN marks ON marks.session = id AND marks.user = sessions.user
WHERE (turn IS NOT NULL OR pending > 0 OR queued > 0) AND (updated_ms, id) < (?, ?)
ORDER BY updated_ms DESC, id DESC LIMIT ?;

-- name: list_children
SELECT id FROM sessions WHERE parent = ? ORDER BY id;
