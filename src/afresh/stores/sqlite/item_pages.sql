-- name: name_id
SELECT id FROM name WHERE text = :text;

-- name: matching
-- How many rows of an index match, counted only as far as it matters.
SELECT count(*) FROM (SELECT 1 FROM state INDEXED BY {index} WHERE {matches} LIMIT :few + 1);

-- name: edge
-- The last of the rows to look at, in this order.
SELECT {column}, {id} FROM {first} WHERE {after} ORDER BY {column} {direction}, {id} {direction}
LIMIT 1 OFFSET :looked_at - 1;

-- name: page
SELECT {item_columns}
FROM {first} CROSS JOIN {second} ON state.item_id = item.id
CROSS JOIN name AS source ON source.id = state.source_id
CROSS JOIN name AS grouping ON grouping.id = state.group_id
WHERE {after} AND {before} AND {matches}
ORDER BY {column} {direction}, {id} {direction}
LIMIT :limit;
