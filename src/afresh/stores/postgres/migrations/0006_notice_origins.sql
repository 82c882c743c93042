-- Where a notice came from (sitemap, feed, …), because each origin is believed as far as its notices were right.
ALTER TABLE notice ADD COLUMN origin text NOT NULL DEFAULT '';
ALTER TABLE notice DROP CONSTRAINT notice_pkey;
ALTER TABLE notice ADD PRIMARY KEY (item_id, origin);
