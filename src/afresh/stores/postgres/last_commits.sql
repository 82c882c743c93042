-- "set" follows "begin" in one message, in which the server takes no parameters: the program fills in the two names.

-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED;

-- name: begin_lightly
BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off;

-- name: set
INSERT INTO last_commit (client, number, committed) VALUES ('{client}', {number}, now())
ON CONFLICT (client) DO UPDATE SET number = excluded.number, committed = excluded.committed;

-- Writes too, because that waits for a transaction that is just adding the row.
-- name: get
INSERT INTO last_commit (client, number, committed) VALUES (%(client)s, 0, now())
ON CONFLICT (client) DO UPDATE SET number = last_commit.number
RETURNING number;

-- name: forget_old_clients
DELETE FROM last_commit WHERE client IN (
    SELECT client FROM last_commit WHERE committed < now() - interval '7 days' FOR UPDATE SKIP LOCKED
);

-- name: terminate
SELECT pg_terminate_backend(%(process)s, 5000);
