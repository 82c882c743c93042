-- Where a notice came from (sitemap, feed, …), because each origin is believed as far as its notices were right.
-- A key cannot be changed in place, so the table is built again.
ALTER TABLE notice RENAME TO notice_before;
CREATE TABLE notice (
    item_id INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
    origin TEXT NOT NULL,
    number INTEGER NOT NULL,
    time_s REAL NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (item_id, origin)
) WITHOUT ROWID;
INSERT INTO notice (item_id, origin, number, time_s, count)
SELECT item_id, '', number, time_s, count FROM notice_before;
DROP TABLE notice_before;
CREATE INDEX notice_number ON notice (number);
