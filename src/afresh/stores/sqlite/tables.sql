-- The first two are tables in the common form, the next find the last numbers given.

-- name: item
(SELECT item.id, item.key, item.labels, item.added_s, item.selector, state.source_id, state.group_id, state.weight,
        state.cost, state.min_interval_s, state.max_interval_s, state.prior_rate_per_s, state.status, state.due_s,
        state.polled_s, state.changed_s, state.polls, state.changes, state.failures, state.version, state.problem,
        state.belief, state.validators, state.recent
 FROM item JOIN state ON state.item_id = item.id);

-- name: content
(SELECT content.id, content.hash, content.size, content.refs, payload.data
 FROM content JOIN payload ON payload.content_id = content.id);

-- name: sequences
SELECT name, seq FROM sqlite_sequence WHERE name IN ('item', 'edit', 'event', 'audit');

-- name: counters
SELECT name, value FROM counter;

-- name: last_content
SELECT coalesce(max(id), 0) FROM content;

-- name: last_name
SELECT coalesce(max(id), 0) FROM name;

-- name: pace
SELECT last_s, debt_s, asked_s FROM pace;

-- name: polls
SELECT coalesce(sum(polls), 0), coalesce(max(polled_s), 0.0) FROM state;

-- name: set_counter
UPDATE counter SET value = ? WHERE name = ?;

-- name: drop_sequence
DELETE FROM sqlite_sequence WHERE name = ?;

-- name: set_sequence
INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?);

-- name: set_pace
UPDATE pace SET last_s = ?, debt_s = ?, asked_s = ?;
