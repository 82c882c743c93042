-- An item's own selector; empty where that of its source holds.
ALTER TABLE item ADD COLUMN selector TEXT NOT NULL DEFAULT '';

DROP VIEW full_item;

CREATE VIEW full_item AS
SELECT item.id, item.key, source.text AS source, grouping.text AS "group",
       state.weight, state.cost, state.min_interval_s, state.max_interval_s, state.prior_rate_per_s,
       item.labels, state.status, item.added_s, state.polled_s, state.changed_s, state.due_s,
       state.polls, state.changes, state.failures, state.problem, state.version, item.selector
FROM item
JOIN state ON state.item_id = item.id
JOIN name AS source ON source.id = state.source_id
JOIN name AS grouping ON grouping.id = state.group_id;
