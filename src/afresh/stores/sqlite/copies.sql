-- name: get
SELECT version.item_id, version.number, version.time_s, media.text, content.size, content.hash,
       version.normal_hash, payload.data
FROM state
JOIN version ON version.item_id = state.item_id AND version.number = coalesce(:number, state.version)
JOIN name AS media ON media.id = version.media_type_id
JOIN content ON content.id = version.content_id
JOIN payload ON payload.content_id = content.id
WHERE state.item_id = :item_id;

-- name: versions
SELECT version.item_id, version.number, version.time_s, media.text, content.size, content.hash,
       version.normal_hash
FROM version
JOIN name AS media ON media.id = version.media_type_id
JOIN content ON content.id = version.content_id
WHERE version.item_id = :item_id
ORDER BY version.number DESC;
