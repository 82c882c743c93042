-- name: first_page
SELECT * FROM full_item
WHERE (%(text)s = '' OR strpos(key, %(text)s) > 0)
  AND (%(status)s::smallint IS NULL OR status = %(status)s)
  AND (%(source)s::text IS NULL OR source = %(source)s)
  AND (%(group)s::text IS NULL OR "group" = %(group)s)
ORDER BY {column} {direction}, id {direction}
LIMIT %(limit)s;

-- name: next_page
-- Apart from the first, so that an index can lead to where the last page ended.
SELECT * FROM full_item
WHERE ({column}, id) {comparison} ({value}, %(last_id)s)
  AND (%(text)s = '' OR strpos(key, %(text)s) > 0)
  AND (%(status)s::smallint IS NULL OR status = %(status)s)
  AND (%(source)s::text IS NULL OR source = %(source)s)
  AND (%(group)s::text IS NULL OR "group" = %(group)s)
ORDER BY {column} {direction}, id {direction}
LIMIT %(limit)s;
