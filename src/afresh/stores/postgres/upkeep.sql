-- The first five statements find contradictions, one line of text for each.

-- name: tally
SELECT 'items counted as source ' || source_id || ', group ' || group_id || ', status ' || status
       || ' are ' || sum(counted) || ', there are ' || sum(there)
FROM (
    SELECT source_id, group_id, status, items AS counted, 0 AS there FROM tally
    UNION ALL
    SELECT source_id, group_id, status, 0, count(*) FROM state GROUP BY source_id, group_id, status
) AS both_ways
GROUP BY source_id, group_id, status
HAVING sum(counted) <> sum(there);

-- name: references
SELECT 'content ' || content_id || ' is counted as used ' || sum(counted) || ' times, it is ' || sum(used)
FROM (
    SELECT id AS content_id, refs AS counted, 0 AS used FROM content
    UNION ALL
    SELECT content_id, 0, count(*) FROM version GROUP BY content_id
) AS both_ways
GROUP BY content_id
HAVING sum(counted) <> sum(used);

-- name: newest
SELECT 'item ' || item.id || ' has no state of its source' FROM item
WHERE NOT EXISTS (SELECT 1 FROM state WHERE state.item_id = item.id AND state.source_id = item.source_id)
UNION ALL
SELECT 'the newest copy of item ' || state.item_id || ' is not there' FROM state
WHERE state.version > 0
  AND NOT EXISTS (SELECT 1 FROM version WHERE version.item_id = state.item_id AND version.number = state.version)
UNION ALL
SELECT 'content ' || content.id || ' has no bytes' FROM content
WHERE NOT EXISTS (SELECT 1 FROM payload WHERE payload.content_id = content.id);

-- name: orphans
SELECT orphan.kind || ' of item ' || orphan.item_id || ', which is not there'
FROM (
    SELECT 'a state' AS kind, item_id FROM state
    UNION ALL SELECT 'a lease', item_id FROM lease
    UNION ALL SELECT 'a notice', item_id FROM notice
    UNION ALL SELECT DISTINCT 'a version', item_id FROM version
    UNION ALL SELECT DISTINCT 'an observation', item_id FROM observation_run
) AS orphan
WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.id = orphan.item_id);

-- name: sizes
SELECT 'sizes kept are ' || kept::text || ', there are ' || there::text
FROM (
    SELECT (SELECT (coalesce(sum(versions), 0)::bigint, coalesce(sum(contents), 0)::bigint,
                    coalesce(sum(content_bytes), 0)::bigint, coalesce(sum(stored_bytes), 0)::bigint) FROM size) AS kept,
           ((SELECT count(*) FROM version), (SELECT count(*) FROM content),
            (SELECT coalesce(sum(content.size), 0)::bigint FROM content),
            (SELECT coalesce(sum(octet_length(data)), 0)::bigint FROM payload)) AS there
) AS compared
WHERE kept <> there;

-- name: contents
SELECT content.id, content.size, content.hash, payload.data
FROM content JOIN payload ON payload.content_id = content.id
WHERE content.id > %(after)s AND content.id %% %(every)s = 0
ORDER BY content.id
LIMIT 100;

-- name: stats
SELECT (SELECT coalesce(sum(items), 0)::bigint FROM tally),
       (SELECT count(*) FROM lease),
       coalesce(sum(size.versions), 0)::bigint,
       coalesce(sum(size.contents), 0)::bigint,
       coalesce(sum(size.content_bytes), 0)::bigint,
       coalesce(sum(size.stored_bytes), 0)::bigint,
       (SELECT count(*) FROM event WHERE due_s < 'infinity')
       + (SELECT count(*) FROM change
          WHERE for_hooks <> 0 AND number > (SELECT value FROM counter WHERE name = 'told')),
       (SELECT count(*) FROM notice),
       (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_catalog.pg_class
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r')
FROM size;

-- name: used
-- The contents are counted, because their table does not shrink when contents are deleted.
SELECT (SELECT coalesce(sum(stored_bytes), 0)::bigint FROM size)
       + (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_catalog.pg_class
          WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'payload');

-- name: old_versions
-- Items are locked first, as a commit does; those that a commit has locked are left for the next time.
SELECT version.item_id, version.number, version.content_id, octet_length(payload.data)
FROM state
JOIN version ON version.item_id = state.item_id AND version.number < state.version
JOIN payload ON payload.content_id = version.content_id
ORDER BY version.time_s, version.item_id, version.number
LIMIT %(limit)s
FOR NO KEY UPDATE OF state SKIP LOCKED;

-- name: drop_old_versions
DELETE FROM version
USING unnest(%(ids)s::bigint[], %(numbers)s::integer[]) AS old (item_id, number)
WHERE version.item_id = old.item_id AND version.number = old.number
RETURNING version.content_id;

-- name: tables
SELECT quote_ident(relname) FROM pg_catalog.pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname;

-- name: named
SELECT hash FROM content WHERE hash IN (SELECT decode(digest, 'hex') FROM unnest(%(hashes)s::text[]) AS digest);

-- name: lock_contents
LOCK TABLE content IN SHARE MODE;
