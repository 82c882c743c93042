-- name: add
INSERT INTO notice (number, item_id, time_s, count)
SELECT ?1, item.id, ?2, 1 FROM item WHERE item.id = ?3
ON CONFLICT (item_id) DO UPDATE SET
    number = excluded.number, time_s = max(time_s, excluded.time_s), count = count + 1;

-- name: open
SELECT number, item_id, time_s, count FROM notice WHERE number > ? ORDER BY number;
