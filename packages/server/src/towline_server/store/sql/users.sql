-- name: insert_user
INSERT INTO users (name, password, admin, created_ms) VALUES (?, ?, ?, ?);

-- name: restore_user
UPDATE users SET password = ?, admin = ?, removed_ms = NULL
WHERE name = ? AND removed_ms IS NOT NULL;

-- name: find_user
SELECT name, password, admin, created_ms, removed_ms FROM users WHERE name = ?;

-- name: list_users
SELECT name, password, admin, created_ms, removed_ms FROM users
WHERE removed_ms IS NULL ORDER BY name;

-- name: remove_user
UPDATE users SET password = NULL, removed_ms = ? WHERE name = ? AND removed_ms IS NULL;

-- name: set_password
UPDATE users SET password = ? WHERE name = ? AND removed_ms IS NULL;

-- name: count_passwords
SELECT count(*) FROM users WHERE password IS NOT NULL AND removed_ms IS NULL;
