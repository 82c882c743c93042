-- name: lock
SELECT pg_advisory_xact_lock(hashtextextended('afresh ' || %(schema)s, 0));

-- name: schema
SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %(schema)s;

-- name: tables
SELECT relation.relname::text
FROM pg_catalog.pg_class AS relation
JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relation.relnamespace
WHERE namespace.nspname = %(schema)s AND relation.relkind IN ('r', 'v', 'm', 'p', 'f');

-- name: version
SELECT coalesce(max(number), 0) FROM migration;

-- name: applied
INSERT INTO migration (number) VALUES (%(number)s);
