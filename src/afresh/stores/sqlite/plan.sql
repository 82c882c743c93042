-- name: columns
SELECT item_id, source_id, group_id, status, weight, polled_s, due_s, belief
FROM state
WHERE item_id > :after
ORDER BY item_id
LIMIT :limit;

-- name: lists
-- The same as one row of lists; quoted numbers are read back exactly.
SELECT group_concat(item_id), group_concat(source_id), group_concat(group_id), group_concat(status),
       group_concat(quote(weight)), group_concat(quote(polled_s)), group_concat(quote(due_s)),
       group_concat(length(belief)), group_concat(hex(belief), '')
FROM (SELECT item_id, source_id, group_id, status, weight, polled_s, due_s, belief
      FROM state
      WHERE item_id > :after
      ORDER BY item_id
      LIMIT :limit);

-- name: limits
-- Separate from the columns, because few items have limits: reading millions takes a third of the time.
SELECT item_id, cost, min_interval_s, max_interval_s, prior_rate_per_s
FROM state
WHERE item_id BETWEEN :first AND :last
  AND (cost <> 1 OR min_interval_s <> 0 OR max_interval_s < 9e999 OR prior_rate_per_s IS NOT NULL);

-- name: columns_of
SELECT item_id, source_id, group_id, status, weight, polled_s, due_s, belief
FROM state
WHERE item_id IN (SELECT value FROM json_each(:ids))
ORDER BY item_id;

-- name: limits_of
SELECT item_id, cost, min_interval_s, max_interval_s, prior_rate_per_s
FROM state
WHERE item_id IN (SELECT value FROM json_each(:ids))
  AND (cost <> 1 OR min_interval_s <> 0 OR max_interval_s < 9e999 OR prior_rate_per_s IS NOT NULL);

-- name: names
SELECT id, text FROM name;

-- name: save
UPDATE state SET due_s = ?, belief = coalesce(?, belief) WHERE item_id = ?;
