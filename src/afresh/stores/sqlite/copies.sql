-- name: get
SELECT version.item_id, version.number, version.time_s, media.text, content.size, content.hash,
       version.normal_hash, version.change_size, payload.data
FROM state
JOIN version ON version.item_id = state.item_id AND version.number = coalesce(:number, state.version)
JOIN name AS media ON media.id = version.media_type_id
JOIN content ON content.id = version.content_id
JOIN payload ON payload.content_id = content.id
WHERE state.item_id = :item_id;

-- name: versions
SELECT version.item_id, version.number, version.time_s, media.text, content.size, content.hash,
       version.normal_hash, version.change_size
FROM version
JOIN name AS media ON media.id = version.media_type_id
JOIN content ON content.id = version.content_id
WHERE version.item_id = :item_id
ORDER BY version.number DESC;

-- name: text
SELECT content_text.data
FROM content JOIN content_text ON content_text.content_id = content.id
WHERE content.hash = :hash AND content_text.form = :form;

-- name: save_text
INSERT INTO content_text (content_id, form, data)
SELECT id, :form, :data FROM content WHERE hash = :hash
ON CONFLICT (content_id, form) DO UPDATE SET data = excluded.data;
