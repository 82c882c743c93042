-- name: known
SELECT state.item_id, lease.token, state.status, state.source_id, state.group_id, state.version, state.recent
FROM json_each(:ids) AS wanted
CROSS JOIN state ON state.item_id = wanted.value
LEFT JOIN lease ON lease.item_id = state.item_id;

-- name: hash_of
SELECT content.hash
FROM version JOIN content ON content.id = version.content_id
WHERE version.item_id = ? AND version.number = ?;

-- name: sizes
SELECT state.item_id, content.size
FROM json_each(:ids) AS wanted
CROSS JOIN state ON state.item_id = wanted.value
JOIN version ON version.item_id = state.item_id AND version.number = state.version
JOIN content ON content.id = version.content_id;

-- name: same_copy
UPDATE version SET normal_hash = ?, media_type_id = ? WHERE item_id = ? AND number = ?;

-- name: add_version
INSERT INTO version (item_id, number, content_id, time_s, media_type_id, normal_hash, change_size)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: drop_versions
DELETE FROM version WHERE item_id = ? AND number <= ? RETURNING content_id;

-- name: keep_state
UPDATE state SET
    due_s = ?,
    status = ?,
    problem = ?,
    polls = polls + 1,
    changes = changes + ?,
    polled_s = coalesce(?, polled_s),
    version = ?,
    belief = coalesce(?, belief),
    validators = coalesce(?, validators),
    recent = ?
WHERE item_id = ?;

-- name: keep_changed
-- Separate from the rest, because SQLite writes every column named in an update into its index again.
UPDATE state SET changed_s = ? WHERE item_id = ?;

-- name: keep_failures
UPDATE state SET failures = ? WHERE item_id = ?;

-- name: any_notice
SELECT 1 FROM notice LIMIT 1;

-- name: answer_notice
DELETE FROM notice WHERE item_id = ? AND time_s <= ?;

-- name: end_lease
DELETE FROM lease WHERE item_id = ?;

-- name: keep_answer
INSERT INTO answer (item_id, token, time_s, text) VALUES (?, ?, ?, ?)
ON CONFLICT (item_id, token) DO NOTHING;

-- name: drop_answers
DELETE FROM answer WHERE time_s < ?;
