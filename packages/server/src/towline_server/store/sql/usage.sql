-- name: add_usage
INSERT INTO usage (
  user, day, session, model, requests, unpriced, input, output, cache_read, cache_write, reasoning,
  cost
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (user, day, session, model) DO UPDATE SET
  requests = requests + excluded.requests,
  unpriced = unpriced + excluded.unpriced,
  input = input + excluded.input,
  output = output + excluded.output,
  cache_read = cache_read + excluded.cache_read,
  cache_write = cache_write + excluded.cache_write,
  reasoning = reasoning + excluded.reasoning,
  cost = cost + excluded.cost;

-- name: cost_of_day
SELECT coalesce(sum(cost), 0.0) FROM usage WHERE user = ? AND day = ?;

-- name: total
SELECT '', NULL, coalesce(sum(requests), 0), coalesce(sum(unpriced), 0), coalesce(sum(input), 0),
  coalesce(sum(output), 0), coalesce(sum(cache_read), 0), coalesce(sum(cache_write), 0),
  coalesce(sum(reasoning), 0), coalesce(sum(cost), 0.0)
FROM usage WHERE user = ? AND day BETWEEN ? AND ?;

-- name: by_day
SELECT day, NULL, sum(requests), sum(unpriced), sum(input), sum(output), sum(cache_read),
  sum(cache_write), sum(reasoning), sum(cost)
FROM usage WHERE user = ? AND day BETWEEN ? AND ?
GROUP BY day ORDER BY day DESC LIMIT ?;

-- name: by_model
SELECT model, NULL, sum(requests), sum(unpriced), sum(input), sum(output), sum(cache_read),
  sum(cache_write), sum(reasoning), sum(cost) AS dollars
FROM usage WHERE user = ? AND day BETWEEN ? AND ?
GROUP BY model ORDER BY dollars DESC, sum(input + output) DESC, model LIMIT ?;

-- name: by_session
SELECT u.session, s.title, sum(u.requests), sum(u.unpriced), sum(u.input), sum(u.output),
  sum(u.cache_read), sum(u.cache_write), sum(u.reasoning), sum(u.cost) AS dollars
FROM usage AS u LEFT JOIN sessions AS s ON s.id = u.session AND s.user = u.user
WHERE u.user = ? AND u.day BETWEEN ? AND ?
GROUP BY u.session ORDER BY dollars DESC, sum(u.input + u.output) DESC, u.session LIMIT ?;
