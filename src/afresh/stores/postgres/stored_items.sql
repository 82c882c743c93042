-- name: find
SELECT item.id, name.text, item.key
FROM item JOIN name ON name.id = item.source_id
WHERE item.key_hash = ANY (%(keys)s::bytea[])
  AND (%(source)s::text IS NULL OR name.text = %(source)s::text);

-- name: get
SELECT full_item.* FROM full_item JOIN item ON item.id = full_item.id
WHERE item.key_hash = %(key)s AND (%(source)s::text IS NULL OR full_item.source = %(source)s::text);

-- name: by_id
SELECT full_item.*
FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted (id, place)
JOIN full_item ON full_item.id = wanted.id
ORDER BY wanted.place;

-- name: validators
SELECT validators FROM state WHERE item_id = %(item_id)s;

-- name: due
SELECT state.item_id
FROM state
WHERE state.status = 0 AND state.due_s <= %(now_s)s
  AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.item_id = state.item_id AND lease.until_s > %(now_s)s)
ORDER BY state.due_s, state.item_id
LIMIT %(limit)s;

-- name: polled_keys
SELECT item.id, item.key
FROM state JOIN item ON item.id = state.item_id
WHERE state.polls > 0;

-- name: counts
SELECT source.text, grouping.text, tally.status, tally.items
FROM tally
JOIN name AS source ON source.id = tally.source_id
JOIN name AS grouping ON grouping.id = tally.group_id
ORDER BY source.text COLLATE "C", grouping.text COLLATE "C", tally.status;

-- name: take_ids
SELECT nextval('item_number') FROM generate_series(1, %(number)s::integer);

-- name: add_items
-- In the order of the unique index, which is the same for all who add the same items at once.
INSERT INTO item (id, source_id, key, key_hash, weight, cost, min_interval_s, max_interval_s, prior_rate_per_s, labels,
                  selector, listed, added_s)
SELECT id, source_id, key, key_hash, weight, cost, min_interval_s, max_interval_s, prior_rate_per_s, labels, selector,
       listed, %(now_s)s
FROM unnest(%(ids)s::bigint[], %(sources)s::integer[], %(keys)s::text[], %(hashes)s::bytea[], %(weights)s::double precision[], %(costs)s::double precision[], %(least)s::double precision[],
            %(most)s::double precision[], %(priors)s::double precision[], %(labels)s::text[], %(selectors)s::text[],
            %(listed)s::smallint[])
     AS new (id, source_id, key, key_hash, weight, cost, min_interval_s, max_interval_s, prior_rate_per_s, labels, selector,
             listed)
ORDER BY key_hash, source_id
ON CONFLICT (key_hash, source_id) DO NOTHING
RETURNING id;

-- name: unlist
UPDATE item SET listed = 0 WHERE listed = 1 AND id = ANY (%(ids)s::bigint[]);

-- name: add_states
INSERT INTO state (item_id, source_id, group_id, status, due_s)
SELECT item_id, source_id, group_id, 0, %(now_s)s
FROM unnest(%(ids)s::bigint[], %(sources)s::integer[], %(groups)s::integer[]) AS new (item_id, source_id, group_id);

-- name: lock
SELECT item_id FROM state WHERE item_id = ANY (%(ids)s::bigint[]) ORDER BY item_id FOR UPDATE;

-- name: crossed
SELECT key FROM item
WHERE id = ANY (%(ids)s::bigint[])
  AND coalesce(%(min_interval_s)s::double precision, min_interval_s)
      > coalesce(%(max_interval_s)s::double precision, max_interval_s)
ORDER BY id
LIMIT 1;

-- name: change_item
UPDATE item SET
    weight = coalesce(%(weight)s::double precision, weight),
    cost = coalesce(%(cost)s::double precision, cost),
    min_interval_s = coalesce(%(min_interval_s)s::double precision, min_interval_s),
    max_interval_s = coalesce(%(max_interval_s)s::double precision, max_interval_s),
    prior_rate_per_s = coalesce(%(prior_rate_per_s)s::double precision, prior_rate_per_s),
    labels = coalesce(%(labels)s::text, labels),
    selector = coalesce(%(selector)s::text, selector)
WHERE id = ANY (%(ids)s::bigint[]);

-- name: change_state
UPDATE state SET
    failures = CASE WHEN %(status)s::smallint = 0 THEN 0 ELSE failures END,
    problem = CASE WHEN %(status)s::smallint = 0 THEN '' ELSE problem END,
    status = coalesce(%(status)s::smallint, status),
    due_s = coalesce(%(due_s)s::double precision, due_s)
WHERE item_id = ANY (%(ids)s::bigint[]);

-- name: count_ids
SELECT source_id, group_id, status, count(*)
FROM state
WHERE item_id = ANY (%(ids)s::bigint[])
GROUP BY source_id, group_id, status;

-- name: removed
SELECT item.id, item.key, state.source_id, 'removed', state.version, %(now_s)s::double precision,
       NULL::double precision, NULL::bigint, content.size,
       NULL::double precision, %(for_hooks)s::smallint
FROM item
JOIN state ON state.item_id = item.id
LEFT JOIN version ON version.item_id = item.id AND version.number = state.version
LEFT JOIN content ON content.id = version.content_id
WHERE item.id = ANY (%(ids)s::bigint[])
ORDER BY item.id;

-- name: drop_versions
DELETE FROM version WHERE item_id = ANY (%(ids)s::bigint[]) RETURNING content_id;

-- name: drop_rest
WITH leases AS (DELETE FROM lease WHERE item_id = ANY (%(ids)s::bigint[])),
     links AS (DELETE FROM page_links WHERE item_id = ANY (%(ids)s::bigint[])),
     notices AS (DELETE FROM notice WHERE item_id = ANY (%(ids)s::bigint[])),
     runs AS (DELETE FROM observation_run WHERE item_id = ANY (%(ids)s::bigint[])),
     states AS (DELETE FROM state WHERE item_id = ANY (%(ids)s::bigint[]))
DELETE FROM item WHERE id = ANY (%(ids)s::bigint[]);

-- name: add_edits
INSERT INTO edit (number, item_id) SELECT * FROM unnest(%(numbers)s::bigint[], %(ids)s::bigint[]);

-- name: trim_edits
DELETE FROM edit WHERE number <= %(last)s - %(kept)s;

-- name: edits
SELECT item_id FROM edit WHERE number > %(after)s ORDER BY number;

-- name: edit_range
SELECT (SELECT min(number) FROM edit), (SELECT value FROM counter WHERE name = 'edit');
