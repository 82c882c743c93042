-- Source and key together identify an item: two sources may have items with the same key. SQLite cannot drop the
-- constraint that keys alone are unique, so the table is written anew, with the same ids; the last id given stays. Only a
-- damaged store has an item without a state; nothing can show or poll it.
DROP VIEW full_item;
CREATE TABLE item_of_source (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    labels TEXT,
    added_s REAL NOT NULL,
    selector TEXT NOT NULL DEFAULT '',
    listed INTEGER NOT NULL DEFAULT 0
);
INSERT INTO item_of_source (id, source_id, key, labels, added_s, selector, listed)
SELECT item.id, state.source_id, item.key, item.labels, item.added_s, item.selector, item.listed
FROM item CROSS JOIN state ON state.item_id = item.id
ORDER BY item.id;
DELETE FROM sqlite_sequence WHERE name = 'item_of_source';
UPDATE sqlite_sequence SET name = 'item_of_source' WHERE name = 'item';
DROP TABLE item;
ALTER TABLE item_of_source RENAME TO item;
CREATE UNIQUE INDEX item_key ON item (key, source_id);
CREATE VIEW full_item AS
SELECT item.id, item.key, source.text AS source, grouping.text AS "group",
       state.weight, state.cost, state.min_interval_s, state.max_interval_s, state.prior_rate_per_s,
       item.labels, state.status, item.added_s, state.polled_s, state.changed_s, state.due_s,
       state.polls, state.changes, state.failures, state.problem, state.version, item.selector
FROM item
JOIN state ON state.item_id = item.id
JOIN name AS source ON source.id = state.source_id
JOIN name AS grouping ON grouping.id = state.group_id;
