-- Every order in which items are listed has an index, so that a page of millions comes at once.
DROP INDEX due;

CREATE INDEX by_due ON state (due_s, item_id, status);

CREATE INDEX by_polled ON state (coalesce(polled_s, -9e999), item_id);

CREATE INDEX by_changed ON state (coalesce(changed_s, -9e999), item_id);

CREATE INDEX by_failures ON state (failures, item_id);

CREATE INDEX by_weight ON state (weight, item_id);

-- Where few items match these are all there is to look at.
CREATE INDEX of_source ON state (source_id);

CREATE INDEX of_group ON state (group_id);

CREATE INDEX idle ON state (status) WHERE status <> 0;
