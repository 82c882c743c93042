-- name: known
-- In the order given; locked, so that no item is removed before its notice is stored.
SELECT state.item_id
FROM unnest(%(ids)s::bigint[]) WITH ORDINALITY AS wanted (item_id, place)
JOIN state ON state.item_id = wanted.item_id
ORDER BY wanted.place
FOR KEY SHARE OF state;

-- name: add
INSERT INTO notice (item_id, number, time_s, count)
SELECT item_id, max(number), max(time_s), count(*)
FROM unnest(%(ids)s::bigint[], %(numbers)s::bigint[], %(times)s::double precision[])
     AS new (item_id, number, time_s)
GROUP BY item_id
ON CONFLICT (item_id) DO UPDATE SET
    number = excluded.number, time_s = greatest(notice.time_s, excluded.time_s),
    count = notice.count + excluded.count;

-- name: open
SELECT number, item_id, time_s, count FROM notice WHERE number > %(after)s ORDER BY number;
