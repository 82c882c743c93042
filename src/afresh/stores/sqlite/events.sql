-- name: lock
-- There is one writer at a time, so there is nothing to lock.
SELECT NULL;

-- name: take
UPDATE event SET due_s = :until_s, attempts = attempts + 1
WHERE id IN (
    SELECT id FROM event
    WHERE due_s <= :now_s
      AND NOT EXISTS (SELECT 1 FROM event AS earlier
                      WHERE earlier.item_id = event.item_id AND earlier.id < event.id AND earlier.due_s > :now_s)
    ORDER BY id LIMIT :limit)
RETURNING id, item_id, key, (SELECT text FROM name WHERE name.id = source_id), kind, version, time_s, attempts;

-- name: done
DELETE FROM event WHERE id IN (SELECT value FROM json_each(:ids));

-- name: defer
UPDATE event SET due_s = :until_s WHERE id IN (SELECT value FROM json_each(:ids));

-- name: waiting
SELECT count(*) FROM event;
