-- name: add
INSERT INTO tally (source_id, group_id, status, items)
SELECT * FROM unnest(%(sources)s::integer[], %(groups)s::integer[], %(statuses)s::smallint[], %(items)s::bigint[])
ON CONFLICT (source_id, group_id, status) DO UPDATE SET items = tally.items + excluded.items;

-- name: drop_empty
DELETE FROM tally
USING unnest(%(sources)s::integer[], %(groups)s::integer[], %(statuses)s::smallint[]) AS moved (source_id, group_id, status)
WHERE tally.source_id = moved.source_id AND tally.group_id = moved.group_id AND tally.status = moved.status
  AND tally.items = 0;
