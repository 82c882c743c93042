-- Every order in which items are listed has an index, so that a page of millions comes at once.
DROP INDEX state_due;

DROP INDEX state_due_idle;

DROP INDEX state_failing;

CREATE INDEX state_by_due ON state (due_s, item_id, status);

CREATE INDEX state_by_polled ON state (coalesce(polled_s, '-infinity'), item_id);

CREATE INDEX state_by_changed ON state (coalesce(changed_s, '-infinity'), item_id);

CREATE INDEX state_by_failures ON state (failures, item_id);

-- Where few items are not active these are all there is to look at.
CREATE INDEX state_idle ON state (status, item_id) WHERE status <> 0;
