-- The session that a sub-agent's session works for; those are in no list.

ALTER TABLE sessions ADD COLUMN parent TEXT;

CREATE INDEX sessions_by_parent ON sessions (parent) WHERE parent IS NOT NULL;
