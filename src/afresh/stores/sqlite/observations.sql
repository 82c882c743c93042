-- name: items_after
SELECT id FROM item WHERE id > :after ORDER BY id LIMIT :limit;

-- name: runs_of
SELECT item_id, data FROM (
    SELECT item_id, number, data FROM observation_run WHERE item_id IN (SELECT value FROM json_each(:ids))
    UNION ALL
    SELECT item_id, 9e99, recent FROM state
    WHERE item_id IN (SELECT value FROM json_each(:ids)) AND recent IS NOT NULL
)
ORDER BY item_id, number;

-- name: unknown
SELECT value FROM json_each(:ids) WHERE value NOT IN (SELECT id FROM item) ORDER BY value LIMIT 1;

-- name: add_counts
UPDATE state SET
    polls = polls + ?1,
    changes = changes + ?2,
    polled_s = max(coalesce(polled_s, ?3), ?3),
    changed_s = max(coalesce(changed_s, ?4), coalesce(?4, changed_s))
WHERE item_id = ?5;

-- name: seal
INSERT INTO observation_run (item_id, number, last_us, observations, data)
SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4 FROM observation_run WHERE item_id = ?1;

-- name: trim_runs
-- Deletes the oldest runs of an item where the newer ones hold enough observations.
DELETE FROM observation_run
WHERE (item_id, number) IN (
    SELECT item_id, number FROM (
        SELECT item_id, number,
               sum(observations) OVER (PARTITION BY item_id ORDER BY last_us DESC, number DESC) - observations AS newer
        FROM observation_run
        WHERE item_id IN (SELECT value FROM json_each(:ids))
    )
    WHERE newer >= :kept
);

-- name: add_audits
INSERT INTO audit (item_id, time_s, elapsed_s, changed, modified_s, count) VALUES (?, ?, ?, ?, ?, ?);

-- name: trim_audits
DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - :kept;

-- name: audits
SELECT item_id, time_s, elapsed_s, changed, modified_s, count FROM audit WHERE time_s >= :since ORDER BY id;
