-- name: name_ids
SELECT text, id FROM name WHERE md5(text) = ANY (%(hashes)s::text[]);

-- name: add_names
INSERT INTO name (text)
SELECT wanted FROM unnest(%(texts)s::text[]) AS wanted
WHERE NOT EXISTS (SELECT 1 FROM name WHERE md5(name.text) = md5(wanted))
ORDER BY md5(wanted)
ON CONFLICT (md5(text)) DO NOTHING;
