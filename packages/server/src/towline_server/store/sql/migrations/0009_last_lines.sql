-- The last thing that was said in a session, on one line. A session of before gets its own when it
-- is next read or written to: no start reads all logs.

ALTER TABLE sessions ADD COLUMN last_line TEXT NOT NULL DEFAULT '';
