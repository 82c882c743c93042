-- name: take
INSERT INTO lease (item_id, token, leased_s, until_s, worker)
SELECT DISTINCT state.item_id, :token, :now_s, :until_s, :worker
FROM json_each(:ids) AS wanted
CROSS JOIN state ON state.item_id = wanted.value
WHERE (:any_status OR state.status = 0)
  AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.item_id = state.item_id AND lease.until_s > :now_s)
ON CONFLICT (item_id) DO UPDATE SET
    token = excluded.token, leased_s = excluded.leased_s, until_s = excluded.until_s,
    worker = excluded.worker
RETURNING item_id;

-- name: release
DELETE FROM lease WHERE item_id = ? AND token = ?;

-- name: open
SELECT item_id, leased_s FROM lease WHERE until_s > :now_s ORDER BY leased_s, item_id;

-- name: until
SELECT until_s FROM lease WHERE item_id = :item_id AND until_s > :now_s;

-- name: read
SELECT {lease_columns}
FROM lease
CROSS JOIN state ON state.item_id = lease.item_id
JOIN item ON item.id = lease.item_id
JOIN name AS source ON source.id = state.source_id
JOIN name AS grouping ON grouping.id = state.group_id
LEFT JOIN version ON version.item_id = state.item_id AND version.number = state.version
WHERE lease.item_id IN (SELECT value FROM json_each(:ids))
ORDER BY state.due_s, item.id;

-- name: extend
UPDATE lease SET until_s = max(until_s, :until_s)
WHERE (item_id, token) IN (
    SELECT ids.value, tokens.value
    FROM json_each(:ids) AS ids JOIN json_each(:tokens) AS tokens ON tokens.key = ids.key
)
RETURNING item_id;

-- name: answers
SELECT answer.item_id, answer.token, answer.text
FROM json_each(:ids) AS ids
JOIN json_each(:tokens) AS tokens ON tokens.key = ids.key
JOIN answer ON answer.item_id = ids.value AND answer.token = tokens.value
WHERE answer.time_s >= :since_s;
