-- name: items_after
SELECT id FROM item WHERE id > %(after)s ORDER BY id LIMIT %(limit)s;

-- name: runs_of
SELECT item_id, data FROM (
    SELECT item_id, number, data FROM observation_run WHERE item_id = ANY (%(ids)s::bigint[])
    UNION ALL
    SELECT item_id, 2147483647, recent FROM state WHERE item_id = ANY (%(ids)s::bigint[]) AND recent IS NOT NULL
) AS runs
ORDER BY item_id, number;

-- name: unknown
SELECT wanted FROM unnest(%(ids)s::bigint[]) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.id = wanted)
ORDER BY wanted LIMIT 1;

-- name: add_counts
UPDATE state SET
    polls = state.polls + new.polls,
    changes = state.changes + new.changes,
    polled_s = greatest(state.polled_s, new.polled_s),
    changed_s = greatest(state.changed_s, new.changed_s)
FROM unnest(%(ids)s::bigint[], %(polls)s::bigint[], %(changes)s::bigint[], %(polled)s::double precision[],
            %(changed)s::double precision[]) AS new (item_id, polls, changes, polled_s, changed_s)
WHERE state.item_id = new.item_id;

-- name: seal
INSERT INTO observation_run (item_id, number, last_us, observations, data)
SELECT new.item_id,
       coalesce((SELECT max(number) FROM observation_run AS old WHERE old.item_id = new.item_id), 0)
           + row_number() OVER (PARTITION BY new.item_id ORDER BY new.place),
       new.last_us, new.observations, new.data
FROM unnest(%(ids)s::bigint[], %(last)s::bigint[], %(observations)s::integer[], %(data)s::bytea[]) WITH ORDINALITY
     AS new (item_id, last_us, observations, data, place);

-- name: trim_runs
-- Deletes the oldest runs of an item where the newer ones hold enough observations.
DELETE FROM observation_run
USING (
    SELECT item_id, number,
           sum(observations) OVER (PARTITION BY item_id ORDER BY last_us DESC, number DESC) - observations AS newer
    FROM observation_run
    WHERE item_id = ANY (%(ids)s::bigint[])
) AS ranked
WHERE observation_run.item_id = ranked.item_id AND observation_run.number = ranked.number
  AND ranked.newer >= %(kept)s;

-- name: add_audits
INSERT INTO audit (item_id, time_s, elapsed_s, changed, modified_s, count)
SELECT item_id, time_s, elapsed_s, changed, modified_s, count
FROM unnest(%(ids)s::bigint[], %(times)s::double precision[], %(elapsed)s::double precision[],
            %(changed)s::boolean[], %(modified)s::double precision[], %(counts)s::bigint[]) WITH ORDINALITY
     AS new (item_id, time_s, elapsed_s, changed, modified_s, count, place)
ORDER BY place;

-- name: trim_audits
-- The ids have gaps, so rows must be counted, but only where there may be too many.
DELETE FROM audit
WHERE (SELECT max(id) - min(id) FROM audit) >= %(kept)s
  AND id <= (SELECT id FROM audit ORDER BY id DESC OFFSET %(kept)s LIMIT 1);

-- name: audits
SELECT item_id, time_s, elapsed_s, changed, modified_s, count FROM audit WHERE time_s >= %(since)s ORDER BY id;
