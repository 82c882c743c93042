-- The first three are tables in the common form, the others find and set the last numbers given.

-- name: item
(SELECT * FROM item JOIN state USING (source_id) WHERE state.item_id = item.id) AS item;

-- name: content
(SELECT * FROM content JOIN payload ON payload.content_id = content.id) AS content;

-- name: ledger
(SELECT minute, source_id, sum(requests)::bigint AS requests, sum(bytes)::bigint AS bytes, sum(seconds) AS seconds,
        sum(money) AS money
 FROM ledger GROUP BY minute, source_id) AS ledger;

-- name: value
(SELECT name COLLATE "C" AS name, data FROM value) AS value;

-- name: counters
SELECT (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM item_number) AS item,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM lease_token) AS lease,
       (SELECT value FROM counter WHERE name = 'edit') AS edit,
       (SELECT value FROM counter WHERE name = 'notice') AS notice,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM event_id_seq) AS event,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM audit_id_seq) AS audit,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM content_id_seq) AS content,
       (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM name_id_seq) AS name,
       (SELECT value FROM counter WHERE name = 'change') AS change,
       (SELECT value FROM counter WHERE name = 'told') AS told,
       (SELECT value FROM counter WHERE name = 'epoch') AS epoch,
       (SELECT last_s FROM pace), (SELECT debt_s FROM pace), (SELECT asked_s FROM pace),
       (SELECT coalesce(sum(polls), 0)::bigint FROM state), (SELECT coalesce(max(polled_s), 0) FROM state);

-- name: set_marks
SELECT setval('item_number', greatest(%(item)s, 1)::bigint, %(item)s > 0),
       setval('lease_token', greatest(%(lease)s, 1)::bigint, %(lease)s > 0),
       setval('event_id_seq', greatest(%(event)s, 1)::bigint, %(event)s > 0),
       setval('audit_id_seq', greatest(%(audit)s, 1)::bigint, %(audit)s > 0),
       setval('content_id_seq', greatest(%(content)s, 1)::bigint, %(content)s > 0),
       setval('name_id_seq', greatest(%(name)s, 1)::bigint, %(name)s > 0);

-- name: set_counters
UPDATE counter SET value = given.value
FROM (VALUES ('edit', %(edit)s::bigint), ('notice', %(notice)s::bigint), ('change', %(change)s::bigint),
             ('told', %(told)s::bigint), ('epoch', %(epoch)s::bigint)) AS given (name, value)
WHERE counter.name = given.name;

-- name: set_pace
UPDATE pace SET last_s = %(last_s)s, debt_s = %(debt_s)s, asked_s = %(asked_s)s;

-- name: set_sizes
INSERT INTO size (shard, versions, contents, content_bytes, stored_bytes)
SELECT 0, (SELECT count(*) FROM version), (SELECT count(*) FROM content),
       (SELECT coalesce(sum(content.size), 0) FROM content),
       (SELECT coalesce(sum(octet_length(data)), 0) FROM payload);
