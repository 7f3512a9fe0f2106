-- Version 3: the conversations of agents' runs, by which a run can go on after its process died. They are not part of the
-- chain: what was decided and done is in the other tables.

CREATE TABLE messages (
    id          INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES runs (id),
    at          TEXT    NOT NULL,
    message     TEXT    NOT NULL              -- JSON, secrets taken out
) STRICT;

CREATE INDEX messages_by_run ON messages (run_id, id);
