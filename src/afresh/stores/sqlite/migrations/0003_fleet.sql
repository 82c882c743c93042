-- The workers that share this store, what each holds for a while, and when requests may start.
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

-- One row: no request starts after last_s, all debts are paid at debt_s.
CREATE TABLE pace (
    last_s REAL NOT NULL,
    debt_s REAL NOT NULL
);

INSERT INTO pace (last_s, debt_s) VALUES (-9e999, -9e999);
