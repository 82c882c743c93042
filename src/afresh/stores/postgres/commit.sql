-- name: lock
SELECT item_id, status, source_id, group_id, version, recent
FROM state WHERE item_id = ANY (%(ids)s::bigint[])
ORDER BY item_id
FOR NO KEY UPDATE;

-- name: tokens
-- A separate statement after the locks, so that it sees the leases that were taken while we waited for them.
SELECT item_id, token FROM lease WHERE item_id = ANY (%(ids)s::bigint[]);

-- name: hashes
SELECT version.item_id, content.hash
FROM unnest(%(ids)s::bigint[], %(numbers)s::integer[]) AS newest (item_id, number)
JOIN version ON version.item_id = newest.item_id AND version.number = newest.number
JOIN content ON content.id = version.content_id;

-- name: sizes
SELECT state.item_id, content.size
FROM state
JOIN version ON version.item_id = state.item_id AND version.number = state.version
JOIN content ON content.id = version.content_id
WHERE state.item_id = ANY (%(ids)s::bigint[]);

-- name: same_copies
UPDATE version SET normal_hash = new.normal_hash, media_type_id = new.media_type_id
FROM unnest(%(ids)s::bigint[], %(numbers)s::integer[], %(media)s::integer[], %(hashes)s::bytea[])
     AS new (item_id, number, media_type_id, normal_hash)
WHERE version.item_id = new.item_id AND version.number = new.number;

-- name: add_versions
INSERT INTO version (item_id, number, content_id, time_s, media_type_id, normal_hash, change_size)
SELECT * FROM unnest(%(ids)s::bigint[], %(numbers)s::integer[], %(contents)s::bigint[],
                     %(times)s::double precision[], %(media)s::integer[], %(hashes)s::bytea[],
                     %(sizes)s::double precision[]);

-- name: drop_versions
DELETE FROM version
USING unnest(%(ids)s::bigint[], %(numbers)s::integer[]) AS new (item_id, number)
WHERE version.item_id = new.item_id AND version.number <= new.number - %(kept)s
RETURNING version.content_id;

-- name: keep_states
UPDATE state SET
    due_s = new.due_s,
    status = new.status,
    failures = new.failures,
    problem = new.problem,
    polls = state.polls + 1,
    changes = state.changes + new.changed,
    polled_s = coalesce(new.polled_s, state.polled_s),
    changed_s = coalesce(new.changed_s, state.changed_s),
    version = new.version,
    belief = coalesce(new.belief, state.belief),
    validators = coalesce(new.validators, state.validators),
    recent = new.recent
FROM unnest(%(ids)s::bigint[], %(due)s::double precision[], %(statuses)s::smallint[], %(failures)s::integer[],
            %(problems)s::text[], %(changed)s::integer[], %(polled)s::double precision[],
            %(changed_s)s::double precision[], %(versions)s::integer[], %(beliefs)s::bytea[],
            %(validators)s::text[], %(recent)s::bytea[])
     AS new (item_id, due_s, status, failures, problem, changed, polled_s, changed_s, version, belief,
             validators, recent)
WHERE state.item_id = new.item_id;

-- name: end_leases
-- The poll answers the notices that are older than its lease.
WITH ended AS (DELETE FROM lease WHERE item_id = ANY (%(ids)s::bigint[]) RETURNING item_id, leased_s)
DELETE FROM notice USING ended WHERE notice.item_id = ended.item_id AND notice.time_s <= ended.leased_s;

-- name: keep_answers
INSERT INTO answer (item_id, token, time_s, text)
SELECT * FROM unnest(%(ids)s::bigint[], %(tokens)s::bigint[], %(times)s::double precision[], %(texts)s::text[])
ON CONFLICT (item_id, token) DO NOTHING;

-- name: drop_answers
-- Rows that another worker is dropping are left to it, so that two workers cannot deadlock.
DELETE FROM answer WHERE (item_id, token) IN (
    SELECT item_id, token FROM answer WHERE time_s < %(before_s)s FOR UPDATE SKIP LOCKED
);
