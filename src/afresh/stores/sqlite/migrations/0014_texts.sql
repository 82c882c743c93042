-- How large each change was, and the texts that were taken from contents, which can be made again at any time.
ALTER TABLE version ADD COLUMN change_size REAL;
CREATE TABLE content_text (
    content_id INTEGER NOT NULL REFERENCES content ON DELETE CASCADE,
    form TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (content_id, form)
) WITHOUT ROWID;
