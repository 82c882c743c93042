-- name: get
SELECT data FROM value WHERE name = :name;

-- name: set
INSERT INTO value (name, data) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data;

-- name: drop
DELETE FROM value WHERE name = ?;

-- name: names
SELECT name FROM value ORDER BY name;

-- name: replace
UPDATE value SET data = :after WHERE name = :name AND data = :before RETURNING name;

-- name: begin
INSERT INTO value (name, data) VALUES (:name, :after) ON CONFLICT (name) DO NOTHING RETURNING name;
