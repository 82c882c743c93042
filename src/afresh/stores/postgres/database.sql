-- name: begin
BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT pg_current_xact_id()::text, pg_backend_pid();

-- name: begin_lightly
BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL synchronous_commit = off;
SELECT pg_current_xact_id()::text, pg_backend_pid();

-- name: status
SELECT pg_xact_status(%(xid)s::xid8);

-- name: terminate
SELECT pg_terminate_backend(%(process)s, 5000);
