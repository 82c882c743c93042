CREATE TABLE name (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);

CREATE TABLE state (
    item_id INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    source_id INTEGER NOT NULL,
    group_id INTEGER NOT NULL,
    status INTEGER NOT NULL,
    weight REAL NOT NULL,
    cost REAL NOT NULL,
    min_interval_s REAL NOT NULL,
    max_interval_s REAL NOT NULL,
    prior_rate_per_s REAL,
    due_s REAL NOT NULL,
    polled_s REAL,
    changed_s REAL,
    polls INTEGER NOT NULL DEFAULT 0,
    changes INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 0,
    problem TEXT NOT NULL DEFAULT '',
    belief BLOB NOT NULL DEFAULT x'',
    validators TEXT,
    recent BLOB
);

CREATE TABLE tally (
    source_id INTEGER NOT NULL,
    group_id INTEGER NOT NULL,
    status INTEGER NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (source_id, group_id, status)
) WITHOUT ROWID;

CREATE TABLE edit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id INTEGER NOT NULL
);

CREATE TABLE lease (
    item_id INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    token INTEGER NOT NULL,
    leased_s REAL NOT NULL,
    until_s REAL NOT NULL
, worker TEXT NOT NULL DEFAULT '');

CREATE INDEX lease_token ON lease (token);

CREATE TABLE counter (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE content (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    refs INTEGER NOT NULL
);

CREATE TABLE payload (
    content_id INTEGER PRIMARY KEY REFERENCES content ON DELETE CASCADE,
    data BLOB NOT NULL
);

CREATE TABLE version (
    item_id INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
    number INTEGER NOT NULL,
    content_id INTEGER NOT NULL,
    time_s REAL NOT NULL,
    media_type_id INTEGER NOT NULL,
    normal_hash BLOB NOT NULL, change_size REAL,
    PRIMARY KEY (item_id, number)
) WITHOUT ROWID;

CREATE TABLE observation_run (
    item_id INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
    number INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    observations INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (item_id, number)
) WITHOUT ROWID;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id INTEGER NOT NULL,
    time_s REAL NOT NULL,
    elapsed_s REAL NOT NULL,
    changed INTEGER NOT NULL,
    modified_s REAL,
    count INTEGER
);

CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    item_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    source_id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    version INTEGER NOT NULL,
    time_s REAL NOT NULL,
    due_s REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0
, problem TEXT NOT NULL DEFAULT '');

CREATE INDEX event_due ON event (due_s);

CREATE TABLE ledger (
    minute INTEGER NOT NULL,
    source_id INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    seconds REAL NOT NULL,
    money REAL NOT NULL,
    PRIMARY KEY (minute, source_id)
) WITHOUT ROWID;

CREATE TABLE value (
    name TEXT PRIMARY KEY,
    data BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE worker (
    name TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    started_s REAL NOT NULL,
    seen_s REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE claim (
    name TEXT PRIMARY KEY,
    worker TEXT NOT NULL,
    until_s REAL NOT NULL
) WITHOUT ROWID;

CREATE INDEX claim_worker ON claim (worker);

CREATE TABLE pace (
    last_s REAL NOT NULL,
    debt_s REAL NOT NULL
, asked_s REAL NOT NULL DEFAULT -9e999);

CREATE INDEX by_due ON state (due_s, item_id, status);

CREATE INDEX by_changed ON state (coalesce(changed_s, -9e999), item_id);

CREATE INDEX by_failures ON state (failures, item_id);

CREATE INDEX by_weight ON state (weight, item_id);

CREATE INDEX of_source ON state (source_id);

CREATE INDEX of_group ON state (group_id);

CREATE INDEX idle ON state (status) WHERE status <> 0;

CREATE TABLE notice (
    item_id INTEGER NOT NULL REFERENCES item ON DELETE CASCADE,
    origin TEXT NOT NULL,
    number INTEGER NOT NULL,
    time_s REAL NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (item_id, origin)
) WITHOUT ROWID;

CREATE INDEX notice_number ON notice (number);

CREATE INDEX event_item ON event (item_id, id);

CREATE TABLE answer (
    item_id INTEGER NOT NULL,
    token INTEGER NOT NULL,
    time_s REAL NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (item_id, token)
) WITHOUT ROWID;

CREATE INDEX answer_time ON answer (time_s);

CREATE TABLE "item" (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    labels TEXT,
    added_s REAL NOT NULL,
    selector TEXT NOT NULL DEFAULT '',
    listed INTEGER NOT NULL DEFAULT 0
);

CREATE UNIQUE INDEX item_key ON item (key, source_id);

CREATE VIEW full_item AS
SELECT item.id, item.key, source.text AS source, grouping.text AS "group",
       state.weight, state.cost, state.min_interval_s, state.max_interval_s, state.prior_rate_per_s,
       item.labels, state.status, item.added_s, state.polled_s, state.changed_s, state.due_s,
       state.polls, state.changes, state.failures, state.problem, state.version, item.selector
FROM item
JOIN state ON state.item_id = item.id
JOIN name AS source ON source.id = state.source_id
JOIN name AS grouping ON grouping.id = state.group_id;

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

CREATE TABLE consumer (
    name TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    cursor TEXT NOT NULL,
    moved_s REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE content_text (
    content_id INTEGER NOT NULL REFERENCES content ON DELETE CASCADE,
    form TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (content_id, form)
) WITHOUT ROWID;

CREATE TABLE page_links (
    item_id INTEGER PRIMARY KEY REFERENCES item ON DELETE CASCADE,
    depth INTEGER NOT NULL,
    chain INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    gained INTEGER NOT NULL,
    unlinked_s REAL,
    links BLOB
);

CREATE INDEX gaining_pages ON page_links (item_id) WHERE gained > 0;

CREATE INDEX unlinked_pages ON page_links (item_id) WHERE unlinked_s IS NOT NULL;
