-- By when the line was last asked a clock that was set back is noticed.
ALTER TABLE pace ADD COLUMN asked_s REAL NOT NULL DEFAULT -9e999;
