-- The devices that are called when nobody looks, and what became of the messages to them.
-- A device's subscription ends with the token that it was made with, if it was one of the store's.

CREATE TABLE push_subscriptions (
  id TEXT PRIMARY KEY,
  user TEXT NOT NULL,
  endpoint TEXT NOT NULL UNIQUE,
  p256dh TEXT NOT NULL,
  auth TEXT NOT NULL,
  subject TEXT NOT NULL,
  origin TEXT NOT NULL,
  language TEXT NOT NULL,
  name TEXT NOT NULL,
  token TEXT,
  created_ms INTEGER NOT NULL
);

CREATE INDEX push_subscriptions_by_user ON push_subscriptions (user, created_ms);

CREATE TABLE push_outcomes (
  id INTEGER PRIMARY KEY,
  user TEXT NOT NULL,
  subscription TEXT NOT NULL,
  kind TEXT NOT NULL,
  session TEXT,
  about TEXT NOT NULL,
  outcome TEXT NOT NULL,
  status INTEGER,
  message TEXT NOT NULL,
  time_ms INTEGER NOT NULL
);

CREATE INDEX push_outcomes_by_user ON push_outcomes (user, id);
CREATE INDEX push_outcomes_by_subscription ON push_outcomes (subscription, id);
