-- What reports of polls were answered with, so that a report that is sent again gets the same answer.
CREATE TABLE answer (
    item_id bigint NOT NULL,
    token bigint NOT NULL,
    time_s double precision NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (item_id, token)
);
CREATE INDEX answer_time ON answer (time_s);
