-- name: get_meta
SELECT value FROM meta WHERE key = ?;

-- name: set_meta
INSERT INTO meta (key, value) VALUES (?, ?)
ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: claim_meta
INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING;
