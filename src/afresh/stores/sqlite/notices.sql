-- name: add
INSERT INTO notice (number, item_id, time_s, count) VALUES (?, ?, ?, 1)
ON CONFLICT (item_id) DO UPDATE SET
    number = excluded.number, time_s = max(time_s, excluded.time_s), count = count + 1;

-- name: known
SELECT item.id FROM json_each(:ids) AS wanted CROSS JOIN item ON item.id = wanted.value ORDER BY wanted.key;

-- name: open
SELECT number, item_id, time_s, count FROM notice WHERE number > :after ORDER BY number;
