-- name: states
SELECT state.item_id, state.belief, state.validators, item.listed, state.recent
FROM state JOIN item ON item.id = state.item_id
WHERE state.item_id = ANY (%(ids)s::bigint[]);

-- name: runs
SELECT item_id, number, last_us, observations, data
FROM observation_run
WHERE item_id = ANY (%(ids)s::bigint[])
ORDER BY item_id, number;

-- name: set_state
UPDATE state SET
    status = %(status)s::smallint, due_s = %(due_s)s::double precision, polled_s = %(polled_s)s::double precision, changed_s = %(changed_s)s::double precision, polls = %(polls)s::bigint,
    changes = %(changes)s::bigint, failures = %(failures)s::integer, version = %(version)s::integer, problem = %(problem)s::text, belief = %(belief)s::bytea,
    validators = %(validators)s::text, recent = %(recent)s::bytea
WHERE item_id = %(item_id)s::bigint;

-- name: set_added
UPDATE item SET added_s = %(added_s)s::double precision WHERE id = %(item_id)s::bigint;

-- name: add_run
INSERT INTO observation_run (item_id, number, last_us, observations, data)
VALUES (%(item_id)s::bigint, %(number)s::integer, %(last_us)s::bigint, %(observations)s::integer, %(data)s::bytea);

-- name: add_version
INSERT INTO version (item_id, number, content_id, time_s, media_type_id, normal_hash, change_size)
VALUES (%(item_id)s::bigint, %(number)s::integer, %(content_id)s::bigint, %(time_s)s::double precision, %(media_type_id)s::integer, %(normal_hash)s::bytea, %(change_size)s::double precision);
