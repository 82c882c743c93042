-- name: beat
INSERT INTO worker (name, host, started_s, seen_s) VALUES (%(name)s, %(host)s, %(started_s)s, %(seen_s)s)
ON CONFLICT (name) DO UPDATE SET seen_s = excluded.seen_s;

-- name: leave
DELETE FROM worker WHERE name = %(worker)s;

-- name: drop_claims
DELETE FROM claim WHERE worker = %(worker)s;

-- name: drop_leases
DELETE FROM lease WHERE worker = %(worker)s;

-- name: workers
SELECT name, host, started_s, seen_s FROM worker WHERE seen_s >= %(since)s ORDER BY name;

-- name: take
INSERT INTO claim (name, worker, until_s)
SELECT name, %(worker)s, %(until_s)s FROM unnest(%(names)s::text[]) AS wanted (name) ORDER BY name COLLATE "C"
ON CONFLICT (name) DO UPDATE SET worker = excluded.worker, until_s = excluded.until_s
WHERE claim.worker = excluded.worker OR claim.until_s <= %(now_s)s
RETURNING name;

-- name: renew
UPDATE claim SET until_s = %(until_s)s
FROM (SELECT name FROM claim WHERE worker = %(worker)s ORDER BY name FOR UPDATE) AS mine
WHERE claim.name = mine.name
RETURNING claim.name;

-- name: release
DELETE FROM claim WHERE worker = %(worker)s AND name = ANY (%(names)s::text[]);

-- name: claims
SELECT name, worker, until_s FROM claim WHERE until_s > %(now_s)s ORDER BY name;

-- name: pace
SELECT last_s, debt_s, asked_s FROM pace FOR UPDATE;

-- name: read_pace
SELECT last_s, debt_s, asked_s FROM pace;

-- name: keep_pace
UPDATE pace SET last_s = %(last_s)s, debt_s = %(debt_s)s, asked_s = %(asked_s)s;

-- name: clock
SELECT extract(epoch FROM clock_timestamp())::double precision;
