-- The first four statements find contradictions, one line of text for each.

-- name: tally
SELECT 'items counted as source ' || source_id || ', group ' || group_id || ', status ' || status
       || ' are ' || sum(counted) || ', there are ' || sum(there)
FROM (
    SELECT source_id, group_id, status, items AS counted, 0 AS there FROM tally
    UNION ALL
    SELECT source_id, group_id, status, 0, count(*) FROM state GROUP BY source_id, group_id, status
)
GROUP BY source_id, group_id, status
HAVING sum(counted) <> sum(there);

-- name: references
SELECT 'content ' || content_id || ' is counted as used ' || sum(counted) || ' times, it is ' || sum(used)
FROM (
    SELECT id AS content_id, refs AS counted, 0 AS used FROM content
    UNION ALL
    SELECT content_id, 0, count(*) FROM version GROUP BY content_id
)
GROUP BY content_id
HAVING sum(counted) <> sum(used);

-- name: newest
SELECT 'item ' || item.id || ' has no state of its source' FROM item
WHERE NOT EXISTS (SELECT 1 FROM state WHERE state.item_id = item.id AND state.source_id = item.source_id)
UNION ALL
SELECT 'the newest copy of item ' || state.item_id || ' is not there' FROM state
WHERE state.version > 0
  AND NOT EXISTS (SELECT 1 FROM version WHERE version.item_id = state.item_id AND version.number = state.version);

-- name: payloads
SELECT 'content ' || content.id || ' has no bytes' FROM content
WHERE NOT EXISTS (SELECT 1 FROM payload WHERE payload.content_id = content.id);

-- name: old_versions
SELECT version.item_id, version.number, version.content_id, length(payload.data)
FROM state
JOIN version ON version.item_id = state.item_id AND version.number < state.version
JOIN payload ON payload.content_id = version.content_id
ORDER BY version.time_s, version.item_id, version.number
LIMIT :limit;

-- name: drop_version
DELETE FROM version WHERE item_id = ? AND number = ?;

-- name: count_contents
SELECT count(*) FROM content;

-- name: contents
SELECT content.id, content.size, content.hash, payload.data
FROM content JOIN payload ON payload.content_id = content.id
WHERE content.id > :after AND content.id % :every = 0
ORDER BY content.id
LIMIT 100;

-- name: stats
SELECT (SELECT coalesce(sum(items), 0) FROM tally),
       (SELECT count(*) FROM lease),
       (SELECT count(*) FROM version),
       (SELECT count(*) FROM content),
       (SELECT coalesce(sum(size), 0) FROM content),
       (SELECT coalesce(sum(length(data)), 0) FROM payload),
       (SELECT count(*) FROM event WHERE due_s < 9e999)
       + (SELECT count(*) FROM change
          WHERE for_hooks <> 0 AND number > (SELECT value FROM counter WHERE name = 'told')),
       (SELECT count(*) FROM notice);

-- name: named
SELECT hash FROM content WHERE hash = :hash;

-- name: lock_contents
-- A transaction that writes is alone in SQLite.
SELECT 1;
