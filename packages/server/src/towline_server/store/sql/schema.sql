-- name: create_versions
CREATE TABLE IF NOT EXISTS schema_version (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL
);

-- name: newest_version
SELECT coalesce(max(version), 0) FROM schema_version;

-- name: note_version
INSERT INTO schema_version (version, name) VALUES (?, ?);

-- name: foreign_tables
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%';
