-- name: has_token
SELECT 1 FROM tokens WHERE sha256 = ?;

-- name: put_subscription
INSERT INTO push_subscriptions
  (id, user, endpoint, p256dh, auth, subject, origin, language, name, token, created_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (endpoint) DO UPDATE SET
  id = CASE WHEN user = excluded.user THEN id ELSE excluded.id END,
  created_ms = CASE WHEN user = excluded.user THEN created_ms ELSE excluded.created_ms END,
  user = excluded.user, p256dh = excluded.p256dh, auth = excluded.auth,
  subject = excluded.subject, origin = excluded.origin, language = excluded.language,
  name = excluded.name, token = excluded.token
RETURNING id;

-- name: list_subscriptions
SELECT s.id, s.user, s.endpoint, s.p256dh, s.auth, s.subject, s.origin, s.language, s.name,
  s.created_ms
FROM push_subscriptions s LEFT JOIN tokens t ON t.sha256 = s.token
WHERE s.user = ? AND (s.token IS NULL
  OR (t.sha256 IS NOT NULL AND (t.expires_ms IS NULL OR t.expires_ms > ?)))
ORDER BY s.created_ms, s.id;

-- name: list_called
SELECT DISTINCT user FROM push_subscriptions;

-- name: trim_subscriptions
DELETE FROM push_subscriptions WHERE user = ? AND id NOT IN
  (SELECT id FROM push_subscriptions WHERE user = ? ORDER BY created_ms DESC, id DESC LIMIT ?);

-- name: remove_subscription
DELETE FROM push_subscriptions WHERE id = ? AND user = ?;

-- name: prune_subscriptions
DELETE FROM push_subscriptions WHERE token IS NOT NULL
  AND token NOT IN (SELECT sha256 FROM tokens);

-- name: insert_outcome
INSERT INTO push_outcomes
  (user, subscription, kind, session, about, outcome, status, message, time_ms)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: trim_outcomes
DELETE FROM push_outcomes WHERE user = ? AND id <=
  (SELECT id FROM push_outcomes WHERE user = ? ORDER BY id DESC LIMIT 1 OFFSET ?);

-- name: last_outcome
SELECT kind, session, about, outcome, status, message, time_ms FROM push_outcomes
WHERE subscription = ? ORDER BY id DESC LIMIT 1;

-- name: list_told
SELECT DISTINCT session, kind, about FROM push_outcomes
WHERE outcome = 'delivered' AND session IS NOT NULL;
