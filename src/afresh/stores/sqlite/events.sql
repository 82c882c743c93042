-- name: take
UPDATE event SET due_s = :until_s, attempts = attempts + 1
WHERE id IN (SELECT id FROM event WHERE due_s <= :now_s ORDER BY id LIMIT :limit)
RETURNING id, item_id, key, (SELECT text FROM name WHERE name.id = source_id), kind, version, time_s, attempts;

-- name: done
DELETE FROM event WHERE id IN (SELECT value FROM json_each(:ids));

-- name: defer
UPDATE event SET due_s = :until_s WHERE id IN (SELECT value FROM json_each(:ids));

-- name: waiting
SELECT count(*) FROM event;
