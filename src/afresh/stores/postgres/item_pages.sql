-- name: name_id
SELECT id FROM name WHERE md5(text) = md5(%(text)s) AND text = %(text)s;

-- name: matching
-- How many items match, counted only as far as it matters.
SELECT count(*) FROM (SELECT FROM state WHERE {matches} LIMIT %(few)s + 1) AS matching;

-- name: edge
-- The last of the rows to look at, in this order.
SELECT {column}, {id} FROM {first} WHERE {after} ORDER BY {column} {direction}, {id} {direction}
LIMIT 1 OFFSET %(looked_at)s - 1;

-- name: page
SELECT {item_columns}
FROM item
JOIN state ON state.item_id = item.id
JOIN name AS source ON source.id = state.source_id
JOIN name AS grouping ON grouping.id = state.group_id
WHERE {after} AND {before} AND {matches}
ORDER BY {column} {direction}, {id} {direction}
LIMIT %(limit)s;
