-- name: known
-- In the order given; locked, so that no item is removed before its notice is stored.
SELECT wanted.place - 1, state.item_id
FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted (item_id, place)
JOIN state ON state.item_id = wanted.item_id
ORDER BY wanted.place
FOR KEY SHARE OF state;

-- name: add
INSERT INTO notice (item_id, origin, number, time_s, count)
SELECT item_id, origin, max(number), max(time_s), count(*)
FROM unnest(%(ids)s::bigint[], %(numbers)s::bigint[], %(times)s::double precision[], %(origins)s::text[])
     AS new (item_id, number, time_s, origin)
GROUP BY item_id, origin
ON CONFLICT (item_id, origin) DO UPDATE SET
    number = excluded.number, time_s = greatest(notice.time_s, excluded.time_s),
    count = notice.count + excluded.count;

-- name: open
SELECT number, item_id, time_s, count, origin FROM notice WHERE number > %(after)s ORDER BY number;
