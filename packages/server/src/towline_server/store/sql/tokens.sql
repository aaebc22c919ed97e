-- name: insert_token
INSERT INTO tokens
  (sha256, id, user, kind, name, created_ms, last_used_ms, expires_ms, slide_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: find_token
SELECT t.sha256, t.id, t.user, t.kind, t.name, t.created_ms, t.last_used_ms, t.expires_ms,
  t.slide_ms, u.admin
FROM tokens t JOIN users u ON u.name = t.user
WHERE t.sha256 = ? AND (t.expires_ms IS NULL OR t.expires_ms > ?) AND u.removed_ms IS NULL;

-- name: list_tokens
SELECT sha256, id, user, kind, name, created_ms, last_used_ms, expires_ms, slide_ms FROM tokens
WHERE user = ? AND (expires_ms IS NULL OR expires_ms > ?) ORDER BY created_ms, id;

-- name: count_tokens
SELECT count(*) FROM tokens WHERE user = ? AND kind = ?;

-- name: touch_token
UPDATE tokens SET last_used_ms = ?,
  expires_ms = CASE WHEN slide_ms IS NULL THEN expires_ms ELSE ? + slide_ms END
WHERE sha256 = ?;

-- name: revoke_token
DELETE FROM tokens WHERE sha256 = ?;

-- name: revoke_token_by_id
DELETE FROM tokens WHERE id = ? AND user = ? RETURNING sha256;

-- name: revoke_oldest_token
DELETE FROM tokens WHERE sha256 =
  (SELECT sha256 FROM tokens WHERE user = ? AND kind = ? ORDER BY last_used_ms, sha256 LIMIT 1)
RETURNING sha256;

-- name: revoke_tokens
DELETE FROM tokens WHERE user = ? AND sha256 != ? AND (kind = ? OR ?) RETURNING sha256;

-- name: prune_tokens
DELETE FROM tokens WHERE expires_ms <= ? RETURNING sha256;
