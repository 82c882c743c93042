-- name: columns
-- Both tables need the bound: without the second one each batch would read the items from the first on.
SELECT state.item_id, state.source_id, state.group_id, state.status, item.weight, item.cost, item.min_interval_s,
       item.max_interval_s, item.prior_rate_per_s, state.polled_s, state.due_s, state.belief
FROM state JOIN item ON item.id = state.item_id
WHERE state.item_id > %(after)s AND item.id > %(after)s
ORDER BY state.item_id
LIMIT %(limit)s;

-- name: columns_of
SELECT state.item_id, state.source_id, state.group_id, state.status, item.weight, item.cost, item.min_interval_s,
       item.max_interval_s, item.prior_rate_per_s, state.polled_s, state.due_s, state.belief
FROM state JOIN item ON item.id = state.item_id
WHERE state.item_id = ANY (%(ids)s::bigint[])
ORDER BY state.item_id;

-- name: names
SELECT id, text FROM name;

-- name: save
UPDATE state SET due_s = new.due_s, belief = coalesce(new.belief, state.belief)
FROM unnest(%(ids)s::bigint[], %(due)s::double precision[], %(beliefs)s::bytea[]) AS new (item_id, due_s, belief)
WHERE state.item_id = new.item_id;
