-- What was used, by day (UTC), model, session and user. It grows with the events that tell of it,
-- in their transactions, and outlives the session.

CREATE TABLE usage (
  user TEXT NOT NULL,
  day TEXT NOT NULL,
  session TEXT NOT NULL,
  model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  unpriced INTEGER NOT NULL,
  input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  cost REAL NOT NULL,
  PRIMARY KEY (user, day, session, model)
) WITHOUT ROWID;

-- What the logs of a store from before tell: each answer by itself, and at the end of its turn what
-- that used besides. `Meter` counts the same from then on.
INSERT INTO usage
WITH told AS (
  SELECT e.session, e.seq, e.turn, e.time_ms, s.user, CAST(e.data AS TEXT) AS text
  FROM events AS e JOIN sessions AS s ON s.id = e.session
  WHERE instr(e.data, CAST('"type":"step_' AS BLOB)) > 0
    OR instr(e.data, CAST('"type":"turn_' AS BLOB)) > 0
),
facts AS (
  SELECT session, seq, turn, time_ms, user,
    json_extract(text, '$.event.type') AS kind,
    json_extract(text, '$.event.model') AS model,
    coalesce(json_extract(text, '$.event.usage.input'), 0) AS input,
    coalesce(json_extract(text, '$.event.usage.output'), 0) AS output,
    coalesce(json_extract(text, '$.event.usage.cache_read'), 0) AS cache_read,
    coalesce(json_extract(text, '$.event.usage.cache_write'), 0) AS cache_write,
    coalesce(json_extract(text, '$.event.usage.reasoning'), 0) AS reasoning,
    json_extract(text, '$.event.cost') AS cost
  FROM told WHERE json_valid(text)
),
asked AS (
  SELECT *, coalesce(substr(max(
    CASE WHEN kind IN ('step_started', 'turn_started') THEN printf('%020d', seq) || model END
  ) OVER (PARTITION BY session ORDER BY seq), 21), '') AS whom
  FROM facts
),
steps AS (
  SELECT session, turn, sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read,
    sum(cache_write) AS cache_write, sum(reasoning) AS reasoning, total(cost) AS cost,
    count(*) - count(cost) AS unpriced
  FROM facts WHERE kind = 'step_ended' GROUP BY session, turn
),
rest AS (
  SELECT a.user, a.time_ms, a.session, a.whom, a.kind, a.cost AS told_cost,
    max(0, a.input - coalesce(s.input, 0)) AS input,
    max(0, a.output - coalesce(s.output, 0)) AS output,
    max(0, a.cache_read - coalesce(s.cache_read, 0)) AS cache_read,
    max(0, a.cache_write - coalesce(s.cache_write, 0)) AS cache_write,
    max(0, a.reasoning - coalesce(s.reasoning, 0)) AS reasoning,
    max(0.0, a.cost - coalesce(s.cost, 0.0)) AS cost,
    coalesce(s.unpriced, 0) AS unpriced
  FROM asked AS a LEFT JOIN steps AS s ON s.session = a.session AND s.turn = a.turn
  WHERE a.kind IN ('turn_completed', 'turn_failed', 'turn_cancelled')
),
counted AS (
  SELECT user, time_ms, session, whom, cost IS NULL AS unpriced, input, output, cache_read,
    cache_write, reasoning, coalesce(cost, 0.0) AS cost
  FROM asked WHERE kind = 'step_ended'
  UNION ALL
  SELECT user, time_ms, session, whom, cost IS NULL, input, output, cache_read, cache_write,
    reasoning, coalesce(cost, 0.0)
  FROM rest
  WHERE input + output + cache_read + cache_write > 0
    OR (kind = 'turn_completed' AND told_cost IS NULL AND unpriced = 0)
)
SELECT user, strftime('%Y-%m-%d', time_ms / 1000, 'unixepoch'), session, whom, count(*),
  sum(unpriced), sum(input), sum(output), sum(cache_read), sum(cache_write), sum(reasoning),
  sum(cost)
FROM counted GROUP BY 1, 2, 3, 4;
