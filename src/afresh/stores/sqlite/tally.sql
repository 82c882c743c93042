-- name: add
INSERT INTO tally (source_id, group_id, status, items) VALUES (?, ?, ?, ?)
ON CONFLICT (source_id, group_id, status) DO UPDATE SET items = items + excluded.items;

-- name: drop_empty
DELETE FROM tally WHERE source_id = ? AND group_id = ? AND status = ? AND items = 0;
