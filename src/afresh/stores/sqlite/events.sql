-- name: lock
-- There is one writer at a time, so there is nothing to lock.
SELECT NULL;

-- name: unqueued
-- How far the feed is, and how far it was queued for hooks.
SELECT (SELECT value FROM counter WHERE name = 'change'), (SELECT value FROM counter WHERE name = 'told');

-- name: queue
INSERT INTO event (item_id, key, source_id, kind, version, time_s, due_s)
SELECT item_id, key, source_id, kind, version, time_s, time_s
FROM change
WHERE for_hooks <> 0 AND number > :after AND number <= :upto
ORDER BY number;

-- name: queued
UPDATE counter SET value = :upto WHERE name = 'told';

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
SELECT (SELECT count(*) FROM event)
       + (SELECT count(*) FROM change
          WHERE for_hooks <> 0 AND number > (SELECT value FROM counter WHERE name = 'told'));
