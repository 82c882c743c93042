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

-- name: due
SELECT name.text, count(*), min(event.time_s)
FROM event JOIN name ON name.id = event.source_id
WHERE event.due_s <= :now_s
GROUP BY name.text;

-- name: take
UPDATE event SET due_s = :until_s, attempts = attempts + 1
WHERE id IN (
    SELECT id FROM event
    WHERE due_s <= :now_s
      AND (:source IS NULL OR source_id = (SELECT id FROM name WHERE text = :source))
      AND NOT EXISTS (SELECT 1 FROM event AS earlier
                      WHERE earlier.item_id = event.item_id AND earlier.id < event.id
                        AND earlier.due_s > :now_s AND earlier.due_s < 9e999)
    ORDER BY id LIMIT :limit)
RETURNING id, item_id, key, (SELECT text FROM name WHERE name.id = source_id), kind, version, time_s, attempts;

-- name: done
DELETE FROM event WHERE id IN (SELECT value FROM json_each(:ids));

-- name: defer
UPDATE event SET due_s = :until_s, problem = :problem WHERE id IN (SELECT value FROM json_each(:ids));

-- name: put_back
UPDATE event SET due_s = :until_s, attempts = attempts - 1 WHERE id IN (SELECT value FROM json_each(:ids)) AND attempts > 0;

-- name: waiting
SELECT (SELECT count(*) FROM event WHERE due_s < 9e999)
       + (SELECT count(*) FROM change
          WHERE for_hooks <> 0 AND number > (SELECT value FROM counter WHERE name = 'told'));

-- name: failed
SELECT event.id, item_id, key, name.text, kind, version, time_s, attempts, problem, due_s
FROM event JOIN name ON name.id = event.source_id
WHERE problem <> ''
ORDER BY CASE WHEN due_s < 9e999 THEN 1 ELSE 0 END, event.id
LIMIT :limit;

-- name: given_up
SELECT count(*) FROM event WHERE due_s = 9e999;

-- name: retry
UPDATE event SET due_s = :now_s, attempts = 0, problem = '' WHERE problem <> '' AND id IN (SELECT value FROM json_each(:ids)) RETURNING id;

-- name: retry_all
UPDATE event SET due_s = :now_s, attempts = 0, problem = '' WHERE problem <> '' RETURNING id;

-- name: retell
INSERT INTO event (item_id, key, source_id, kind, version, time_s, due_s)
SELECT item_id, key, source_id, kind, version, time_s, time_s
FROM change
WHERE number > :after AND number <= :upto
  AND source_id = (SELECT id FROM name WHERE text = :source)
ORDER BY number
RETURNING id;
