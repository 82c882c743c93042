-- name: keep
INSERT INTO content (hash, size, refs)
SELECT * FROM unnest(%(hashes)s::bytea[], %(sizes)s::bigint[], %(uses)s::bigint[])
ON CONFLICT (hash) DO UPDATE SET refs = content.refs + excluded.refs
RETURNING id, hash, refs;

-- name: keep_payloads
INSERT INTO payload (content_id, data) SELECT * FROM unnest(%(ids)s::bigint[], %(data)b::bytea[]);

-- name: lock
SELECT id FROM content WHERE id = ANY (%(ids)s::bigint[]) ORDER BY id FOR UPDATE;

-- name: drop
UPDATE content SET refs = content.refs - old.uses
FROM unnest(%(ids)s::bigint[], %(uses)s::bigint[]) AS old (id, uses)
WHERE content.id = old.id;

-- name: collect
DELETE FROM content WHERE id = ANY (%(ids)s::bigint[]) AND refs = 0 RETURNING id, size;

-- name: collect_payloads
DELETE FROM payload WHERE content_id = ANY (%(ids)s::bigint[]) RETURNING octet_length(data);

-- name: resize
INSERT INTO size (shard, versions, contents, content_bytes, stored_bytes)
VALUES (pg_backend_pid() %% 16, %(versions)s, %(contents)s, %(content_bytes)s, %(stored_bytes)s)
ON CONFLICT (shard) DO UPDATE SET
    versions = size.versions + excluded.versions,
    contents = size.contents + excluded.contents,
    content_bytes = size.content_bytes + excluded.content_bytes,
    stored_bytes = size.stored_bytes + excluded.stored_bytes;
