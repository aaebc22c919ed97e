-- What the list tells of a session beside its state, how it is found, what people have read of it,
-- and which sessions are gone.

ALTER TABLE sessions ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;

-- One label a line.
ALTER TABLE sessions ADD COLUMN labels TEXT NOT NULL DEFAULT '';

-- The number of the last entry of the conversation: what is unread, is unread up to here.
ALTER TABLE sessions ADD COLUMN said_seq INTEGER NOT NULL DEFAULT 0;

UPDATE sessions SET said_seq = last_seq WHERE last_seq > 1;

DROP INDEX sessions_by_user;

CREATE INDEX sessions_listed ON sessions (user, archived, updated_ms, id);

CREATE INDEX sessions_needing ON sessions (user, archived, updated_ms, id) WHERE pending > 0;

-- Apart from the row, which every append writes anew.
CREATE TABLE words (
  session TEXT PRIMARY KEY,
  folded TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO words (session, folded) SELECT id, lower(title) FROM sessions WHERE title IS NOT NULL;

CREATE TABLE marks (
  user TEXT NOT NULL,
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (session, user)
) WITHOUT ROWID;

-- `emptied` is 0 until the session's events are removed as well.
CREATE TABLE tombstones (
  session TEXT PRIMARY KEY,
  user TEXT NOT NULL,
  deleted_ms INTEGER NOT NULL,
  emptied INTEGER NOT NULL
) WITHOUT ROWID;

CREATE INDEX tombstones_unfinished ON tombstones (session) WHERE emptied = 0;

CREATE INDEX tombstones_by_age ON tombstones (deleted_ms);
