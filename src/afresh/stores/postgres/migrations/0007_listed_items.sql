-- Whether a listing named the item and the user did not add it: its host receives no secrets of the source. Items that a
-- listing named before this migration count as listed; the names of the listings' entries are the keys of JSON objects.
ALTER TABLE item ADD COLUMN listed smallint NOT NULL DEFAULT 0;
UPDATE item SET listed = 1 WHERE key IN (
    SELECT json_object_keys(convert_from(value.data, 'UTF8')::json) FROM value WHERE substr(value.name, 1, 14) = 'engine.listed:'
);
