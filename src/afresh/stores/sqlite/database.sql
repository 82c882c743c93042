-- Tables that several groups of a store write to.

-- name: name_ids
SELECT name.text, name.id
FROM json_each(:texts) AS wanted CROSS JOIN name ON name.text = wanted.value;

-- name: add_names
INSERT INTO name (text) SELECT value FROM json_each(:texts) WHERE true ON CONFLICT (text) DO NOTHING;

-- name: add_to_tally
INSERT INTO tally (source_id, group_id, status, items) VALUES (?, ?, ?, ?)
ON CONFLICT (source_id, group_id, status) DO UPDATE SET items = items + excluded.items;

-- name: drop_empty_tally
DELETE FROM tally WHERE source_id = ? AND group_id = ? AND status = ? AND items = 0;

-- name: take_numbers
UPDATE counter SET value = value + :numbers WHERE name = :name RETURNING value;
