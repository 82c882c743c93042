-- An event waits for the earlier events of its item.
CREATE INDEX event_item ON event (item_id, id);
