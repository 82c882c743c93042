-- name: keep
INSERT INTO content (hash, size, refs) VALUES (?, ?, 1)
ON CONFLICT (hash) DO UPDATE SET refs = refs + 1
RETURNING id, refs;

-- name: keep_payload
INSERT INTO payload (content_id, data) VALUES (?, ?);

-- name: drop
UPDATE content SET refs = refs - ? WHERE id = ?;

-- name: collect
DELETE FROM content WHERE id = ? AND refs = 0;
