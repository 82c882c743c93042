-- name: columns
SELECT item_id, source_id, group_id, status, weight, cost, min_interval_s, max_interval_s,
       prior_rate_per_s, polled_s, due_s, belief
FROM state
WHERE item_id > ?
ORDER BY item_id
LIMIT ?;

-- name: columns_of
SELECT item_id, source_id, group_id, status, weight, cost, min_interval_s, max_interval_s,
       prior_rate_per_s, polled_s, due_s, belief
FROM state
WHERE item_id IN (SELECT value FROM json_each(?))
ORDER BY item_id;

-- name: names
SELECT id, text FROM name;

-- name: save
UPDATE state SET due_s = ?, belief = coalesce(?, belief) WHERE item_id = ?;
