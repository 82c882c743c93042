-- The number of the last transaction that each client committed. A transaction id cannot say this: after a crash, the server
-- gives the ids of lost transactions to others.
CREATE TABLE last_commit (
    client uuid PRIMARY KEY,
    number bigint NOT NULL,
    committed timestamptz NOT NULL
);
