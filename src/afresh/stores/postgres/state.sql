-- name: get
SELECT data FROM value WHERE md5(name) = md5(%(name)s) AND name = %(name)s;

-- name: set
INSERT INTO value (name, data)
SELECT * FROM unnest(%(names)s::text[], %(data)s::bytea[])
ON CONFLICT (md5(name)) DO UPDATE SET data = excluded.data WHERE value.data <> excluded.data;

-- name: drop
DELETE FROM value WHERE md5(name) = ANY (SELECT md5(gone) FROM unnest(%(names)s::text[]) AS gone);

-- name: names
SELECT name FROM value ORDER BY name COLLATE "C";

-- name: replace
UPDATE value SET data = %(after)s WHERE md5(name) = md5(%(name)s) AND name = %(name)s AND data = %(before)s RETURNING name;

-- name: begin
INSERT INTO value (name, data) VALUES (%(name)s, %(after)s) ON CONFLICT (md5(name)) DO NOTHING RETURNING name;
