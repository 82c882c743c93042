-- What reports of polls were answered with, so that a report that is sent again gets the same answer.
CREATE TABLE answer (
    item_id INTEGER NOT NULL,
    token INTEGER NOT NULL,
    time_s REAL NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (item_id, token)
) WITHOUT ROWID;
CREATE INDEX answer_time ON answer (time_s);
