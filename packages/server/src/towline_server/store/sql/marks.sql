-- name: advance_mark
INSERT INTO marks (session, user, seq)
SELECT id, user, min(?, last_seq) FROM sessions WHERE id = ? AND user = ?
ON CONFLICT (session, user) DO UPDATE SET seq = max(seq, excluded.seq)
RETURNING seq;
