-- name: add
INSERT INTO notice (number, item_id, time_s, origin, count) VALUES (?, ?, ?, ?, 1)
ON CONFLICT (item_id, origin) DO UPDATE SET
    number = excluded.number, time_s = max(time_s, excluded.time_s), count = count + 1;

-- name: known
SELECT wanted.key, item.id FROM json_each(:ids) AS wanted CROSS JOIN item ON item.id = wanted.value ORDER BY wanted.key;

-- name: open
SELECT number, item_id, time_s, count, origin FROM notice WHERE number > :after ORDER BY number;
