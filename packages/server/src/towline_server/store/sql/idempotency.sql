-- name: find_record
SELECT user, operation, path, key, body_sha256, status, answer, created_ms FROM idempotency
WHERE user = ? AND operation = ? AND path = ? AND key = ? AND created_ms >= ?;

-- name: keep_record
INSERT OR REPLACE INTO idempotency (
  user, operation, path, key, body_sha256, status, answer, created_ms
) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: prune_records
DELETE FROM idempotency WHERE created_ms < ?;
