-- name: get
SELECT data FROM value WHERE name = :name;

-- name: set
INSERT INTO value (name, data) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data;

-- name: drop
DELETE FROM value WHERE name = ?;

-- name: names
SELECT name FROM value ORDER BY name;
