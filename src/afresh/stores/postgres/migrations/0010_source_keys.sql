-- Source and key together identify an item: two sources may have items with the same key. Only a damaged store has
-- an item without a state; nothing can show or poll it.
ALTER TABLE item ADD COLUMN source_id integer;
UPDATE item SET source_id = state.source_id FROM state WHERE state.item_id = item.id;
DELETE FROM item WHERE source_id IS NULL;
ALTER TABLE item ALTER COLUMN source_id SET NOT NULL;
DROP INDEX item_key;
CREATE UNIQUE INDEX item_key ON item (key_hash, source_id);
