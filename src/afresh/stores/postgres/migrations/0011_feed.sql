-- The feed: every change of a copy, numbered in the order of the commits by the counter 'change'. The counter 'epoch'
-- is a random number that tells this feed from those of other stores. Hooks are a consumer of the feed: 'told' is the
-- number of the last change that was queued for them, in table event; events that are queued already stay there.
CREATE TABLE change (
    number bigint PRIMARY KEY,
    item_id bigint NOT NULL,
    key text NOT NULL,
    source_id integer NOT NULL,
    kind text NOT NULL,
    version integer NOT NULL,
    time_s double precision NOT NULL,
    changed_s double precision,
    size bigint,
    previous_size bigint,
    change_size double precision,
    for_hooks smallint NOT NULL
);
CREATE INDEX change_for_hooks ON change (number) WHERE for_hooks <> 0;
INSERT INTO counter (name, value)
VALUES ('change', 0), ('told', 0), ('epoch', 1 + (random() * 17592186044414)::bigint);
-- Programs that follow the feed, and how far they are.
CREATE TABLE consumer (
    name text COLLATE "C" PRIMARY KEY,
    source text NOT NULL,
    cursor text NOT NULL,
    moved_s double precision NOT NULL
);
-- Why the last delivery of an event failed, for people.
ALTER TABLE event ADD COLUMN problem text NOT NULL DEFAULT '';
