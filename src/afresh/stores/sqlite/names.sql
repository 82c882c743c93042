-- name: name_ids
SELECT name.text, name.id
FROM json_each(?) AS wanted CROSS JOIN name ON name.text = wanted.value;

-- name: add_names
INSERT INTO name (text) SELECT value FROM json_each(?) WHERE true ON CONFLICT (text) DO NOTHING;
