-- The log of every session, its row in the list, and what a server knows beside them.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- `last_seq` is where the log of the session ends; each append moves it on from exactly there.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  user TEXT NOT NULL,
  agent TEXT NOT NULL,
  model TEXT NOT NULL,
  mode TEXT NOT NULL,
  title TEXT,
  cwd TEXT,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  last_seq INTEGER NOT NULL,
  turn TEXT,
  pending INTEGER NOT NULL,
  queued INTEGER NOT NULL,
  closed INTEGER NOT NULL
);

CREATE INDEX sessions_by_user ON sessions (user, updated_ms, id);

-- A start looks at these alone, however many sessions are stored (C6).
CREATE INDEX sessions_open ON sessions (updated_ms, id)
  WHERE turn IS NOT NULL OR pending > 0 OR queued > 0;

-- `data` is the envelope as it goes out; `private` never leaves the server (C1.9).
CREATE TABLE events (
  session TEXT NOT NULL,
  seq INTEGER NOT NULL,
  turn TEXT,
  time_ms INTEGER NOT NULL,
  data BLOB NOT NULL,
  private BLOB,
  PRIMARY KEY (session, seq)
);

CREATE TABLE idempotency (
  user TEXT NOT NULL,
  operation TEXT NOT NULL,
  path TEXT NOT NULL,
  key TEXT NOT NULL,
  body_sha256 TEXT NOT NULL,
  status INTEGER NOT NULL,
  answer BLOB NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (user, operation, path, key)
) WITHOUT ROWID;

CREATE INDEX idempotency_by_age ON idempotency (created_ms);

CREATE TABLE tokens (
  sha256 TEXT PRIMARY KEY,
  user TEXT NOT NULL,
  name TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  last_used_ms INTEGER NOT NULL,
  expires_ms INTEGER
) WITHOUT ROWID;

CREATE INDEX tokens_by_user ON tokens (user, created_ms);
