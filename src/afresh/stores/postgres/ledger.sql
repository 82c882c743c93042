-- name: add
INSERT INTO ledger (minute, source_id, shard, requests, bytes, seconds, money)
SELECT minute, source_id, pg_backend_pid() %% 64, requests, bytes, seconds, money
FROM unnest(%(minutes)s::bigint[], %(sources)s::integer[], %(requests)s::bigint[], %(bytes)s::bigint[],
            %(seconds)s::double precision[], %(money)s::double precision[])
     AS new (minute, source_id, requests, bytes, seconds, money)
ON CONFLICT (minute, source_id, shard) DO UPDATE SET
    requests = ledger.requests + excluded.requests, bytes = ledger.bytes + excluded.bytes,
    seconds = ledger.seconds + excluded.seconds, money = ledger.money + excluded.money;

-- name: total
SELECT coalesce(sum(requests), 0)::bigint, coalesce(sum(bytes), 0)::bigint,
       coalesce(sum(seconds), 0), coalesce(sum(money), 0)
FROM ledger WHERE minute >= %(since)s AND minute < %(until)s;

-- name: rows
SELECT ledger.minute, name.text, sum(ledger.requests)::bigint, sum(ledger.bytes)::bigint,
       sum(ledger.seconds), sum(ledger.money)
FROM ledger JOIN name ON name.id = ledger.source_id
WHERE ledger.minute >= %(since)s AND ledger.minute < %(until)s
GROUP BY ledger.minute, name.text
ORDER BY ledger.minute, name.text COLLATE "C";

-- name: forget
DELETE FROM ledger WHERE minute < %(before)s;
