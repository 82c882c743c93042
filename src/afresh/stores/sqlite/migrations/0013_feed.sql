-- The feed: every change of a copy, numbered in the order of the commits by the counter 'change'. The counter 'epoch'
-- is a random number that tells this feed from those of other stores. Hooks are a consumer of the feed: 'told' is the
-- number of the last change that was queued for them, in table event; events that are queued already stay there.
CREATE TABLE change (
    number INTEGER PRIMARY KEY,
    item_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    source_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    time_s REAL NOT NULL,
    changed_s REAL,
    size INTEGER,
    previous_size INTEGER,
    change_size REAL,
    for_hooks INTEGER NOT NULL
);
CREATE INDEX change_for_hooks ON change (number) WHERE for_hooks <> 0;
INSERT INTO counter (name, value) VALUES ('change', 0), ('told', 0), ('epoch', 1 + (random() & 0xFFFFFFFFFFF));
-- Programs that follow the feed, and how far they are.
CREATE TABLE consumer (
    name TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    cursor TEXT NOT NULL,
    moved_s REAL NOT NULL
) WITHOUT ROWID;
-- Why the last delivery of an event failed, for people.
ALTER TABLE event ADD COLUMN problem TEXT NOT NULL DEFAULT '';
