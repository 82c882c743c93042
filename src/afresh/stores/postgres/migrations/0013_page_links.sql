-- The links of pages, for sources that follow links. "links" is a compressed list of keys, null before the page was read.
CREATE TABLE page_links (
    item_id bigint PRIMARY KEY,
    depth integer NOT NULL,
    chain integer NOT NULL,
    readings integer NOT NULL,
    gained integer NOT NULL,
    unlinked_s double precision,
    links bytea
);
CREATE INDEX gaining_pages ON page_links (item_id) WHERE gained > 0;
CREATE INDEX unlinked_pages ON page_links (item_id) WHERE unlinked_s IS NOT NULL;
