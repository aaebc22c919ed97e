-- name: insert_token
INSERT INTO tokens (sha256, user, name, created_ms, last_used_ms, expires_ms)
VALUES (?, ?, ?, ?, ?, ?);

-- name: find_token
SELECT sha256, user, name, created_ms, last_used_ms, expires_ms FROM tokens
WHERE sha256 = ? AND (expires_ms IS NULL OR expires_ms > ?);

-- name: list_tokens
SELECT sha256, user, name, created_ms, last_used_ms, expires_ms FROM tokens
WHERE user = ? ORDER BY created_ms, sha256;

-- name: touch_token
UPDATE tokens SET last_used_ms = ?, expires_ms = ? WHERE sha256 = ?;

-- name: revoke_token
DELETE FROM tokens WHERE sha256 = ?;

-- name: prune_tokens
DELETE FROM tokens WHERE expires_ms <= ?;
