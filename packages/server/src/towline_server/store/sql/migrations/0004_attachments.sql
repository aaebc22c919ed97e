-- What stands in no event: pictures, documents, long outputs, by the hash of their bytes (C1.10).

-- A row without a hash is an upload that is not whole yet.
CREATE TABLE files (
  place INTEGER PRIMARY KEY,
  file TEXT UNIQUE,
  media_type TEXT,
  size INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL
);

CREATE INDEX files_unfinished ON files (created_ms) WHERE file IS NULL;

-- The bytes, in pieces, so that nobody holds a whole file in memory to write or to read it.
CREATE TABLE file_pieces (
  place INTEGER NOT NULL,
  number INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (place, number)
);

-- Who may read a file. It goes when no session of theirs uses it and `held_until_ms` has passed.
CREATE TABLE file_owners (
  file TEXT NOT NULL,
  user TEXT NOT NULL,
  name TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  held_until_ms INTEGER NOT NULL,
  PRIMARY KEY (file, user)
) WITHOUT ROWID;

CREATE INDEX file_owners_held ON file_owners (held_until_ms);

CREATE TABLE file_uses (
  session TEXT NOT NULL,
  file TEXT NOT NULL,
  user TEXT NOT NULL,
  PRIMARY KEY (session, file)
) WITHOUT ROWID;

CREATE INDEX file_uses_by_file ON file_uses (file, user);
