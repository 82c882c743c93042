-- name: append
-- The counter's row stays locked until the commit, so that numbers are in the order of the commits.
WITH taken AS (UPDATE counter SET value = value + %(count)s WHERE name = 'change' RETURNING value)
INSERT INTO change (number, item_id, key, source_id, kind, version, time_s, changed_s, size, previous_size, change_size, for_hooks)
SELECT taken.value - %(count)s + place, item_id, key, source_id, kind, version, time_s, changed_s, size, previous_size,
       change_size, for_hooks
FROM taken,
     unnest(%(ids)s::bigint[], %(keys)s::text[], %(sources)s::integer[], %(kinds)s::text[], %(versions)s::integer[],
            %(times)s::double precision[], %(changed)s::double precision[], %(sizes)s::bigint[],
            %(previous)s::bigint[], %(shares)s::double precision[], %(hooks)s::smallint[]) WITH ORDINALITY
     AS new (item_id, key, source_id, kind, version, time_s, changed_s, size, previous_size, change_size, for_hooks, place);

-- name: ends
SELECT (SELECT value FROM counter WHERE name = 'epoch'), (SELECT value FROM counter WHERE name = 'change'),
       (SELECT min(number) FROM change);

-- name: last
SELECT value FROM counter WHERE name = 'change';

-- name: identity
SELECT item_id, kind, version, time_s FROM change WHERE number = %(number)s;

-- name: source_id
SELECT id FROM name WHERE md5(text) = md5(%(text)s) AND text = %(text)s;

-- name: after
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number > %(after)s
ORDER BY number LIMIT %(limit)s;

-- name: after_of_source
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number > %(after)s AND source_id = %(source_id)s
ORDER BY number LIMIT %(limit)s;

-- name: newest
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number < %(before)s
ORDER BY number DESC LIMIT %(limit)s;

-- name: newest_of_source
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number < %(before)s AND source_id = %(source_id)s
ORDER BY number DESC LIMIT %(limit)s;

-- name: oldest
SELECT number, time_s FROM change ORDER BY number LIMIT %(limit)s;

-- name: first_untold
SELECT min(number) FROM change
WHERE for_hooks <> 0 AND number > (SELECT value FROM counter WHERE name = 'told');

-- name: trim
DELETE FROM change WHERE number < %(anchor)s;

-- name: consumers
SELECT name, source, cursor, moved_s FROM consumer ORDER BY name;

-- name: move
INSERT INTO consumer (name, source, cursor, moved_s) VALUES (%(name)s, %(source)s, %(cursor)s, %(now_s)s)
ON CONFLICT (name) DO UPDATE SET source = excluded.source, cursor = excluded.cursor, moved_s = excluded.moved_s;

-- name: drop
DELETE FROM consumer WHERE name = %(name)s RETURNING name;
