-- How large each change was, and the texts that were taken from contents, which can be made again at any time.
ALTER TABLE version ADD COLUMN change_size double precision;
CREATE TABLE content_text (
    content_id bigint NOT NULL REFERENCES content ON DELETE CASCADE,
    form text NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (content_id, form)
);
