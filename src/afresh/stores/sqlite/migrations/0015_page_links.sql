-- The links of pages, for sources that follow links. "links" is a compressed list of keys, null before the page was read.
CREATE TABLE page_links (
    item_id INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    depth INTEGER NOT NULL,
    chain INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    gained INTEGER NOT NULL,
    unlinked_s REAL,
    links BLOB
);
CREATE INDEX gaining_pages ON page_links (item_id) WHERE gained > 0;
CREATE INDEX unlinked_pages ON page_links (item_id) WHERE unlinked_s IS NOT NULL;
