-- name: beat
INSERT INTO worker (name, host, started_s, seen_s) VALUES (:name, :host, :started_s, :seen_s)
ON CONFLICT (name) DO UPDATE SET seen_s = excluded.seen_s;

-- name: leave
DELETE FROM worker WHERE name = :worker;

-- name: drop_claims
DELETE FROM claim WHERE worker = :worker;

-- name: drop_leases
DELETE FROM lease WHERE worker = :worker;

-- name: workers
SELECT name, host, started_s, seen_s FROM worker WHERE seen_s >= :since ORDER BY name;

-- name: take
INSERT INTO claim (name, worker, until_s)
SELECT value, :worker, :until_s FROM json_each(:names) WHERE true
ON CONFLICT (name) DO UPDATE SET worker = excluded.worker, until_s = excluded.until_s
WHERE worker = excluded.worker OR until_s <= :now_s
RETURNING name;

-- name: renew
UPDATE claim SET until_s = :until_s WHERE worker = :worker RETURNING name;

-- name: release
DELETE FROM claim WHERE worker = :worker AND name IN (SELECT value FROM json_each(:names));

-- name: claims
SELECT name, worker, until_s FROM claim WHERE until_s > :now_s ORDER BY name;

-- name: pace
SELECT last_s, debt_s, asked_s FROM pace;

-- name: read_pace
SELECT last_s, debt_s, asked_s FROM pace;

-- name: keep_pace
UPDATE pace SET last_s = :last_s, debt_s = :debt_s, asked_s = :asked_s;
