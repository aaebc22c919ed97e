-- Who may come in. A removed user keeps the row: the name leads to sessions that are still stored.

CREATE TABLE users (
  name TEXT PRIMARY KEY,
  password TEXT,
  admin INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  removed_ms INTEGER
) WITHOUT ROWID;

INSERT INTO users (name, admin, created_ms)
VALUES ('owner', 1, CAST(strftime('%s', 'now') AS INTEGER) * 1000);

-- `id` names a token in lists. `slide_ms` is how far each use moves its end on; NULL for not.
ALTER TABLE tokens ADD COLUMN id TEXT NOT NULL DEFAULT '';

ALTER TABLE tokens ADD COLUMN kind TEXT NOT NULL DEFAULT 'device';

ALTER TABLE tokens ADD COLUMN slide_ms INTEGER;

UPDATE tokens SET id = 'tok_' || lower(hex(randomblob(8))), slide_ms = 15552000000;

CREATE UNIQUE INDEX tokens_by_id ON tokens (id);
