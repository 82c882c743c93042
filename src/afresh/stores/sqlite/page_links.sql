-- name: add
INSERT INTO page_links (item_id, depth, chain, readings, gained)
SELECT item.id, ?2, ?3, 0, 0 FROM item WHERE item.id = ?1
ON CONFLICT (item_id) DO UPDATE SET depth = min(depth, excluded.depth), chain = min(chain, excluded.chain);

-- name: keep
-- The links that a poll found.
INSERT INTO page_links (item_id, depth, chain, readings, gained, links) VALUES (?1, 0, 0, 1, 0, ?3)
ON CONFLICT (item_id) DO UPDATE SET readings = readings + 1, gained = gained + ?2, links = excluded.links;

-- name: by_id
SELECT item_id, depth, chain, readings, gained, unlinked_s, links
FROM page_links WHERE item_id IN (SELECT value FROM json_each(:ids)) ORDER BY item_id;

-- name: after
SELECT item_id, depth, chain, readings, gained, unlinked_s, links
FROM page_links WHERE item_id > :after ORDER BY item_id LIMIT :limit;

-- name: gaining
SELECT item_id, depth, chain, readings, gained, unlinked_s, NULL FROM page_links WHERE gained > 0 ORDER BY item_id;

-- name: unlinked
SELECT item_id, depth, chain, readings, gained, unlinked_s, NULL
FROM page_links WHERE unlinked_s IS NOT NULL ORDER BY item_id;

-- name: mark
UPDATE page_links SET unlinked_s = :time_s WHERE item_id IN (SELECT value FROM json_each(:ids));
