-- The first two are tables in the common form, the others find and set the last numbers given.

-- name: item
(SELECT * FROM item JOIN state USING (source_id) WHERE state.item_id = item.id);

-- name: content
(SELECT * FROM content JOIN payload ON payload.content_id = content.id);

-- name: counters
SELECT (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'item'),
       (SELECT value FROM counter WHERE name = 'lease'),
       (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'edit'),
       (SELECT value FROM counter WHERE name = 'notice'),
       (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'event'),
       (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'audit'),
       (SELECT coalesce(max(id), 0) FROM content),
       (SELECT coalesce(max(id), 0) FROM name),
       (SELECT value FROM counter WHERE name = 'change'),
       (SELECT value FROM counter WHERE name = 'told'),
       (SELECT value FROM counter WHERE name = 'epoch'),
       last_s, debt_s, asked_s,
       (SELECT coalesce(sum(polls), 0) FROM state),
       (SELECT coalesce(max(polled_s), 0.0) FROM state)
FROM pace;

-- name: set_counter
UPDATE counter SET value = ? WHERE name = ?;

-- name: drop_sequence
DELETE FROM sqlite_sequence WHERE name = ?;

-- name: set_sequence
INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?);

-- name: set_pace
UPDATE pace SET last_s = ?, debt_s = ?, asked_s = ?;
