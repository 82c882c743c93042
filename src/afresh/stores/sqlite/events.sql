-- name: due
SELECT event.id, event.item_id, event.key, name.text, event.kind, event.version, event.time_s, event.attempts
FROM event JOIN name ON name.id = event.source_id
WHERE event.due_s <= ?
ORDER BY event.id
LIMIT ?;

-- name: taken
UPDATE event SET due_s = ?, attempts = attempts + 1 WHERE id IN (SELECT value FROM json_each(?));

-- name: done
DELETE FROM event WHERE id IN (SELECT value FROM json_each(?));

-- name: defer
UPDATE event SET due_s = ? WHERE id IN (SELECT value FROM json_each(?));

-- name: waiting
SELECT count(*) FROM event;
