-- Whom an item is lent to: when a worker dies, what it was polling need not wait until its lease runs out.
ALTER TABLE lease ADD COLUMN worker TEXT NOT NULL DEFAULT '';
