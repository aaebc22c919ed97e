-- What `towline doctor --repair` took out of its place, as it lay there: nothing is thrown away.
-- A deleted session takes its rows along (C2.10).

CREATE TABLE quarantine (
  id INTEGER PRIMARY KEY,
  found_ms INTEGER NOT NULL,
  place TEXT NOT NULL,
  session TEXT,
  seq INTEGER,
  reason TEXT NOT NULL,
  data BLOB,
  private BLOB
);

CREATE INDEX quarantine_by_session ON quarantine (session);
