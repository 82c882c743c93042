-- name: lock
-- Of two workers that take events at once, the second waits; otherwise it would overlook what the first one takes, and
-- take later events of the same items.
SELECT pg_advisory_xact_lock(hashtextextended('afresh events ' || current_schema(), 0));

-- name: unqueued
-- How far the feed is, and how far it was queued for hooks.
SELECT (SELECT value FROM counter WHERE name = 'change'), (SELECT value FROM counter WHERE name = 'told');

-- name: queue
INSERT INTO event (item_id, key, source_id, kind, version, time_s, due_s)
SELECT item_id, key, source_id, kind, version, time_s, time_s
FROM change
WHERE for_hooks <> 0 AND number > %(after)s AND number <= %(upto)s
ORDER BY number;

-- name: queued
UPDATE counter SET value = %(upto)s WHERE name = 'told';

-- name: due
SELECT name.text, count(*), min(event.time_s)
FROM event JOIN name ON name.id = event.source_id
WHERE event.due_s <= %(now_s)s
GROUP BY name.text;

-- name: take
WITH due AS (
    SELECT id FROM event
    WHERE due_s <= %(now_s)s
      AND (%(source)s::text IS NULL OR source_id = (SELECT id FROM name WHERE md5(text) = md5(%(source)s::text)))
      AND NOT EXISTS (SELECT 1 FROM event AS earlier
                      WHERE earlier.item_id = event.item_id AND earlier.id < event.id
                        AND earlier.due_s > %(now_s)s AND earlier.due_s < 'infinity')
    ORDER BY id LIMIT %(limit)s FOR UPDATE
), taken AS (
    UPDATE event SET due_s = %(until_s)s, attempts = event.attempts + 1
    FROM due WHERE event.id = due.id
    RETURNING event.*
)
SELECT taken.id, taken.item_id, taken.key, name.text, taken.kind, taken.version, taken.time_s, taken.attempts
FROM taken JOIN name ON name.id = taken.source_id
ORDER BY taken.id;

-- name: done
DELETE FROM event WHERE id = ANY (%(ids)s::bigint[]);

-- name: defer
UPDATE event SET due_s = %(until_s)s, problem = %(problem)s WHERE id = ANY (%(ids)s::bigint[]);

-- name: put_back
UPDATE event SET due_s = %(until_s)s, attempts = attempts - 1 WHERE id = ANY (%(ids)s::bigint[]) AND attempts > 0;

-- name: waiting
SELECT (SELECT count(*) FROM event WHERE due_s < 'infinity')
       + (SELECT count(*) FROM change
          WHERE for_hooks <> 0 AND number > (SELECT value FROM counter WHERE name = 'told'));

-- name: failed
SELECT event.id, item_id, key, name.text, kind, version, time_s, attempts, problem, due_s
FROM event JOIN name ON name.id = event.source_id
WHERE problem <> ''
ORDER BY CASE WHEN due_s < 'infinity' THEN 1 ELSE 0 END, event.id
LIMIT %(limit)s;

-- name: given_up
SELECT count(*) FROM event WHERE due_s = 'infinity';

-- name: retry
UPDATE event SET due_s = %(now_s)s, attempts = 0, problem = '' WHERE problem <> '' AND id = ANY (%(ids)s::bigint[]) RETURNING id;

-- name: retry_all
UPDATE event SET due_s = %(now_s)s, attempts = 0, problem = '' WHERE problem <> '' RETURNING id;

-- name: retell
INSERT INTO event (item_id, key, source_id, kind, version, time_s, due_s)
SELECT item_id, key, source_id, kind, version, time_s, time_s
FROM change
WHERE number > %(after)s AND number <= %(upto)s
  AND source_id = (SELECT id FROM name WHERE md5(text) = md5(%(source)s::text))
ORDER BY number
RETURNING id;
