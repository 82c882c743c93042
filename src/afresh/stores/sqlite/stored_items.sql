-- name: find
SELECT item.id, name.text, item.key
FROM json_each(:keys) AS wanted
CROSS JOIN item INDEXED BY item_key ON item.key = wanted.value
CROSS JOIN name ON name.id = item.source_id
WHERE :source IS NULL OR name.text = :source;

-- name: get
SELECT * FROM full_item WHERE key = :key AND (:source IS NULL OR source = :source);

-- name: lock
-- There is one writer at a time, so that nothing needs to be locked.
SELECT id FROM item WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id;

-- name: by_id
SELECT full_item.*
FROM json_each(:ids) AS wanted CROSS JOIN full_item ON full_item.id = wanted.value
ORDER BY wanted.key;

-- name: validators
SELECT validators FROM state WHERE item_id = :item_id;

-- name: due
-- The status is in the index, so items that are not active are skipped quickly.
SELECT state.item_id
FROM state INDEXED BY by_due
WHERE state.status = 0 AND state.due_s <= :now_s
  AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.item_id = state.item_id AND lease.until_s > :now_s)
ORDER BY state.due_s, state.item_id
LIMIT :limit;

-- name: polled_keys
SELECT item.id, item.key
FROM state JOIN item ON item.id = state.item_id
WHERE state.polls > 0;

-- name: counts
SELECT source.text, grouping.text, tally.status, tally.items
FROM tally
JOIN name AS source ON source.id = tally.source_id
JOIN name AS grouping ON grouping.id = tally.group_id
ORDER BY source.text, grouping.text, tally.status;

-- name: unlist
UPDATE item SET listed = 0 WHERE listed = 1 AND id IN (SELECT value FROM json_each(:ids));

-- name: last_id
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'item';

-- name: crossed
SELECT item.key
FROM json_each(:ids) AS wanted
CROSS JOIN state ON state.item_id = wanted.value
JOIN item ON item.id = state.item_id
WHERE coalesce(:min_interval_s, state.min_interval_s) > coalesce(:max_interval_s, state.max_interval_s)
LIMIT 1;

-- name: change_state
UPDATE state SET
    weight = coalesce(:weight, weight),
    cost = coalesce(:cost, cost),
    min_interval_s = coalesce(:min_interval_s, min_interval_s),
    max_interval_s = coalesce(:max_interval_s, max_interval_s),
    prior_rate_per_s = coalesce(:prior_rate_per_s, prior_rate_per_s),
    failures = CASE WHEN :status = 0 THEN 0 ELSE failures END,
    problem = CASE WHEN :status = 0 THEN '' ELSE problem END,
    status = coalesce(:status, status),
    due_s = coalesce(:due_s, due_s)
WHERE item_id IN (SELECT value FROM json_each(:ids));

-- name: change_item
-- Items whose labels and selector stay are not written again.
UPDATE item SET labels = coalesce(:labels, labels), selector = coalesce(:selector, selector)
WHERE id IN (SELECT value FROM json_each(:ids)) AND (:labels IS NOT NULL OR :selector IS NOT NULL);

-- name: count_ids
SELECT source_id, group_id, status, count(*)
FROM state
WHERE item_id IN (SELECT value FROM json_each(:ids))
GROUP BY source_id, group_id, status;

-- name: removed
SELECT item.id, item.key, state.source_id, 'removed', state.version, :now_s, NULL, NULL, content.size, NULL, :for_hooks
FROM json_each(:ids) AS wanted
CROSS JOIN item ON item.id = wanted.value
JOIN state ON state.item_id = item.id
LEFT JOIN version ON version.item_id = item.id AND version.number = state.version
LEFT JOIN content ON content.id = version.content_id
ORDER BY item.id;

-- name: drop_versions
DELETE FROM version WHERE item_id IN (SELECT value FROM json_each(:ids)) RETURNING content_id;

-- name: drop_items
DELETE FROM item WHERE id IN (SELECT value FROM json_each(:ids));

-- name: add_edits
INSERT INTO edit (item_id) SELECT value FROM json_each(:ids);

-- name: trim_edits
DELETE FROM edit WHERE number <= (SELECT max(number) FROM edit) - :kept;

-- name: edits
SELECT item_id FROM edit WHERE number > :after ORDER BY number;

-- name: edit_range
SELECT (SELECT min(number) FROM edit), coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'edit'), 0);
