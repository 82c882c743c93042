-- name: take
WITH due AS (
    SELECT id FROM event WHERE due_s <= %(now_s)s ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
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
UPDATE event SET due_s = %(until_s)s WHERE id = ANY (%(ids)s::bigint[]);

-- name: waiting
SELECT count(*) FROM event;
