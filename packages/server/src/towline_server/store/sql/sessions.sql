-- name: insert_session
INSERT INTO sessions (
  user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending, queued, closed,
  last_seq, id
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: update_session
UPDATE sessions SET
  user = ?, agent = ?, model = ?, mode = ?, title = ?, cwd = ?, created_ms = ?, updated_ms = ?,
  turn = ?, pending = ?, queued = ?, closed = ?, last_seq = ?
WHERE id = ? AND last_seq = ?;

-- name: advance_session
UPDATE sessions SET updated_ms = max(updated_ms, ?), last_seq = ? WHERE id = ? AND last_seq = ?;

-- name: get_session
SELECT id, user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending, queued,
  closed, last_seq
FROM sessions WHERE id = ?;

-- name: list_sessions
SELECT id, user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending, queued,
  closed, last_seq
FROM sessions
WHERE user = ? AND (updated_ms, id) < (?, ?)
ORDER BY updated_ms DESC, id DESC LIMIT ?;

-- name: list_open_sessions
SELECT id, user, agent, model, mode, title, cwd, created_ms, updated_ms, turn, pending, queued,
  closed, last_seq
FROM sessions
WHERE (turn IS NOT NULL OR pending > 0 OR queued > 0) AND (updated_ms, id) < (?, ?)
ORDER BY updated_ms DESC, id DESC LIMIT ?;
