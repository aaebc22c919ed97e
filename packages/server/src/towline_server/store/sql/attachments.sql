-- name: begin_file
INSERT INTO files (created_ms) VALUES (?);

-- name: add_piece
INSERT INTO file_pieces (place, number, data)
SELECT place, ?, ? FROM files WHERE place = ? AND file IS NULL;

-- name: find_place
SELECT place FROM files WHERE file = ?;

-- name: finish_file
UPDATE files SET file = ?, media_type = ?, size = ? WHERE place = ? AND file IS NULL;

-- name: drop_pieces
DELETE FROM file_pieces WHERE place = ?;

-- name: drop_file
DELETE FROM files WHERE place = ?;

-- name: own_file
INSERT INTO file_owners (file, user, name, created_ms, held_until_ms) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (file, user) DO UPDATE SET
  name = CASE WHEN excluded.name = '' THEN name ELSE excluded.name END,
  held_until_ms = max(held_until_ms, excluded.held_until_ms);

-- name: find_file
SELECT files.file, files.media_type, files.size, file_owners.name
FROM file_owners JOIN files ON files.file = file_owners.file
WHERE file_owners.file = ? AND file_owners.user = ?;

-- name: hold_file
UPDATE file_owners SET held_until_ms = max(held_until_ms, ?) WHERE file = ? AND user = ?;

-- name: read_piece
SELECT file_pieces.data
FROM file_owners
JOIN files ON files.file = file_owners.file
JOIN file_pieces ON file_pieces.place = files.place
WHERE file_owners.file = ? AND file_owners.user = ? AND file_pieces.number = ?;

-- name: use_file
INSERT OR IGNORE INTO file_uses (session, file, user)
SELECT ?, file, user FROM file_owners WHERE file = ? AND user = ?;

-- name: unhold_file
UPDATE file_owners SET held_until_ms = 0 WHERE file = ? AND user = ?;

-- name: files_of_session
SELECT file, user FROM file_uses WHERE session = ?;

-- name: drop_uses
DELETE FROM file_uses WHERE session = ?;

-- name: disown_file
DELETE FROM file_owners
WHERE file = ? AND user = ? AND held_until_ms <= ? AND NOT EXISTS (
  SELECT 1 FROM file_uses
  WHERE file_uses.file = file_owners.file AND file_uses.user = file_owners.user
);

-- name: unused_owners
SELECT file, user FROM file_owners
WHERE held_until_ms <= ? AND held_until_ms > 0 AND NOT EXISTS (
  SELECT 1 FROM file_uses
  WHERE file_uses.file = file_owners.file AND file_uses.user = file_owners.user
);

-- name: waiting_bytes
SELECT coalesce(sum(files.size), 0), coalesce(min(file_owners.held_until_ms), 0)
FROM file_owners JOIN files ON files.file = file_owners.file
WHERE file_owners.user = ? AND file_owners.file != ? AND file_owners.held_until_ms > ?
  AND NOT EXISTS (
    SELECT 1 FROM file_uses
    WHERE file_uses.file = file_owners.file AND file_uses.user = file_owners.user
  );

-- name: place_without_owner
SELECT place FROM files
WHERE file = ? AND NOT EXISTS (SELECT 1 FROM file_owners WHERE file_owners.file = files.file);

-- name: unfinished
SELECT place FROM files WHERE file IS NULL AND created_ms < ?;
