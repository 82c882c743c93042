-- Whether a listing named the item and the user did not add it: its host receives no secrets of the source. Items that a
-- listing named before this migration count as listed; the names of the listings' entries are the keys of JSON objects.
ALTER TABLE item ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;
UPDATE item SET listed = 1 WHERE key IN (
    SELECT entry.key FROM value, json_each(CAST(value.data AS TEXT)) AS entry WHERE substr(value.name, 1, 14) = 'engine.listed:'
);
