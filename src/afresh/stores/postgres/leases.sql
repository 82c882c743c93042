-- Rows that another worker has locked are skipped, since it is about to lease them. A row may be locked here just after
-- another worker's lease was committed, so the insertion checks again and leaves a lease that has not expired alone.

-- name: take
SELECT item_id FROM state
WHERE item_id = ANY (%(ids)s::bigint[]) AND (%(any_status)s OR status = 0)
ORDER BY item_id
FOR NO KEY UPDATE SKIP LOCKED;

-- name: lease_free
INSERT INTO lease (item_id, token, leased_s, until_s, worker)
SELECT item_id, (SELECT nextval('lease_token')), %(now_s)s, %(until_s)s, %(worker)s
FROM unnest(%(ids)s::bigint[]) AS free (item_id)
ON CONFLICT (item_id) DO UPDATE SET
    token = excluded.token, leased_s = excluded.leased_s, until_s = excluded.until_s,
    worker = excluded.worker
WHERE lease.until_s <= %(now_s)s
RETURNING item_id;

-- name: read
SELECT {lease_columns}
FROM lease
JOIN state ON state.item_id = lease.item_id
JOIN item ON item.id = lease.item_id
JOIN name AS source ON source.id = state.source_id
JOIN name AS grouping ON grouping.id = state.group_id
LEFT JOIN version ON version.item_id = state.item_id AND version.number = state.version
WHERE lease.item_id = ANY (%(ids)s::bigint[])
ORDER BY state.due_s, item.id;

-- name: release
DELETE FROM lease
USING unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) AS mine (item_id, token)
WHERE lease.item_id = mine.item_id AND lease.token = mine.token;

-- name: open
SELECT item_id, leased_s FROM lease WHERE until_s > %(now_s)s ORDER BY leased_s, item_id;

-- name: until
SELECT until_s FROM lease WHERE item_id = %(item_id)s AND until_s > %(now_s)s;

-- name: extend
UPDATE lease SET until_s = greatest(until_s, %(until_s)s)
FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) AS mine (item_id, token)
WHERE lease.item_id = mine.item_id AND lease.token = mine.token
RETURNING lease.item_id;

-- name: answers
SELECT answer.item_id, answer.token, answer.text
FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[]) AS mine (item_id, token)
JOIN answer ON answer.item_id = mine.item_id AND answer.token = mine.token
WHERE answer.time_s >= %(since_s)s;
