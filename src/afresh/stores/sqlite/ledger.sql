-- name: add
INSERT INTO ledger (minute, source_id, requests, bytes, seconds, money) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (minute, source_id) DO UPDATE SET
    requests = requests + excluded.requests, bytes = bytes + excluded.bytes,
    seconds = seconds + excluded.seconds, money = money + excluded.money;

-- name: total
SELECT coalesce(sum(requests), 0), coalesce(sum(bytes), 0), total(seconds), total(money)
FROM ledger WHERE minute >= :since AND minute < :until;

-- name: rows
SELECT ledger.minute, name.text, ledger.requests, ledger.bytes, ledger.seconds, ledger.money
FROM ledger JOIN name ON name.id = ledger.source_id
WHERE ledger.minute >= :since AND ledger.minute < :until
ORDER BY ledger.minute, name.text;

-- name: forget
DELETE FROM ledger WHERE minute < :before;
