-- name: append
INSERT INTO change (number, item_id, key, source_id, kind, version, time_s, changed_s, size, previous_size, change_size, for_hooks)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: ends
SELECT (SELECT value FROM counter WHERE name = 'epoch'), (SELECT value FROM counter WHERE name = 'change'),
       (SELECT min(number) FROM change);

-- name: last
SELECT value FROM counter WHERE name = 'change';

-- name: identity
SELECT item_id, kind, version, time_s FROM change WHERE number = :number;

-- name: source_id
SELECT id FROM name WHERE text = :text;

-- name: after
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number > :after
ORDER BY number LIMIT :limit;

-- name: after_of_source
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number > :after AND source_id = :source_id
ORDER BY number LIMIT :limit;

-- name: newest
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number < :before
ORDER BY number DESC LIMIT :limit;

-- name: newest_of_source
SELECT number, item_id, key, name.text, kind, version, time_s, changed_s, size, previous_size, change_size
FROM change JOIN name ON name.id = change.source_id
WHERE number < :before AND source_id = :source_id
ORDER BY number DESC LIMIT :limit;

-- name: oldest
SELECT number, time_s FROM change ORDER BY number LIMIT :limit;

-- name: first_untold
SELECT min(number) FROM change
WHERE for_hooks <> 0 AND number > (SELECT value FROM counter WHERE name = 'told');

-- name: trim
DELETE FROM change WHERE number < :anchor;

-- name: consumers
SELECT name, source, cursor, moved_s FROM consumer ORDER BY name;

-- name: move
INSERT INTO consumer (name, source, cursor, moved_s) VALUES (:name, :source, :cursor, :now_s)
ON CONFLICT (name) DO UPDATE SET source = excluded.source, cursor = excluded.cursor, moved_s = excluded.moved_s;

-- name: drop
DELETE FROM consumer WHERE name = :name RETURNING name;
