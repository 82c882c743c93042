-- name: states
SELECT state.item_id, state.belief, state.validators, item.listed, state.recent
FROM state JOIN item ON item.id = state.item_id
WHERE state.item_id IN (SELECT value FROM json_each(:ids));

-- name: runs
SELECT item_id, number, last_us, observations, data
FROM observation_run
WHERE item_id IN (SELECT value FROM json_each(:ids))
ORDER BY item_id, number;

-- name: set_state
UPDATE state SET
    status = :status, due_s = :due_s, polled_s = :polled_s, changed_s = :changed_s, polls = :polls,
    changes = :changes, failures = :failures, version = :version, problem = :problem, belief = :belief,
    validators = :validators, recent = :recent
WHERE item_id = :item_id;

-- name: set_added
UPDATE item SET added_s = :added_s WHERE id = :item_id;

-- name: add_run
INSERT INTO observation_run (item_id, number, last_us, observations, data)
VALUES (:item_id, :number, :last_us, :observations, :data);

-- name: add_version
INSERT INTO version (item_id, number, content_id, time_s, media_type_id, normal_hash, change_size)
VALUES (:item_id, :number, :content_id, :time_s, :media_type_id, :normal_hash, :change_size);
