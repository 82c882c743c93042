-- name: name_ids
SELECT text, id FROM name WHERE md5(text) = ANY (%(hashes)s::text[]);

-- name: add_names
INSERT INTO name (text)
SELECT wanted FROM unnest(%(texts)s::text[]) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM name WHERE md5(name.text) = md5(wanted))
ORDER BY md5(wanted)
ON CONFLICT (md5(text)) DO NOTHING;

-- name: add_to_tally
INSERT INTO tally (source_id, group_id, status, items)
SELECT * FROM unnest(%(sources)s::integer[], %(groups)s::integer[], %(statuses)s::smallint[], %(items)s::bigint[])
ON CONFLICT (source_id, group_id, status) DO UPDATE SET items = tally.items + excluded.items;

-- name: drop_empty_tally
DELETE FROM tally
USING unnest(%(sources)s::integer[], %(groups)s::integer[], %(statuses)s::smallint[]) AS moved (source_id, group_id, status)
WHERE tally.source_id = moved.source_id AND tally.group_id = moved.group_id AND tally.status = moved.status
  AND tally.items = 0;

-- name: take_numbers
UPDATE counter SET value = value + %(numbers)s WHERE name = %(name)s RETURNING value;

-- name: lock_states
SELECT item_id FROM state WHERE item_id = ANY (%(ids)s::bigint[]) ORDER BY item_id FOR NO KEY UPDATE;
