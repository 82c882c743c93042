-- name: add
INSERT INTO page_links (item_id, depth, chain, readings, gained)
SELECT new.item_id, new.depth, new.chain, 0, 0
FROM unnest(%(ids)s::bigint[], %(depths)s::integer[], %(chains)s::integer[]) AS new (item_id, depth, chain)
JOIN (SELECT item_id FROM state WHERE item_id = ANY (%(ids)s::bigint[]) ORDER BY item_id FOR KEY SHARE) AS known
    ON known.item_id = new.item_id
ON CONFLICT (item_id) DO UPDATE SET
    depth = least(page_links.depth, excluded.depth), chain = least(page_links.chain, excluded.chain);

-- name: keep
-- The links that polls found.
INSERT INTO page_links AS old (item_id, depth, chain, readings, gained, links)
SELECT item_id, 0, 0, 1, gained, links
FROM unnest(%(ids)s::bigint[], %(gained)s::integer[], %(links)s::bytea[]) AS new (item_id, gained, links)
ON CONFLICT (item_id) DO UPDATE SET
    readings = old.readings + 1, gained = old.gained + excluded.gained, links = excluded.links;

-- name: by_id
SELECT item_id, depth, chain, readings, gained, unlinked_s, links
FROM page_links WHERE item_id = ANY (%(ids)s::bigint[]) ORDER BY item_id;

-- name: after
SELECT item_id, depth, chain, readings, gained, unlinked_s, links
FROM page_links WHERE item_id > %(after)s ORDER BY item_id LIMIT %(limit)s;

-- name: gaining
SELECT item_id, depth, chain, readings, gained, unlinked_s, NULL FROM page_links WHERE gained > 0 ORDER BY item_id;

-- name: unlinked
SELECT item_id, depth, chain, readings, gained, unlinked_s, NULL
FROM page_links WHERE unlinked_s IS NOT NULL ORDER BY item_id;

-- name: mark
UPDATE page_links SET unlinked_s = %(time_s)s WHERE item_id = ANY (%(ids)s::bigint[]);
