-- Version 2: questions that wait for an answer, and what was removed because of its age or size.

-- One question of a run, kept with exactly what the person is shown.
CREATE TABLE pending_approvals (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice: people write it down
    run_id      INTEGER NOT NULL REFERENCES runs (id),
    step_id     INTEGER NOT NULL REFERENCES steps (id),
    at          TEXT    NOT NULL,
    root        TEXT    NOT NULL,
    workdir     TEXT    NOT NULL,             -- the real directory
    action      TEXT    NOT NULL,             -- JSON: what was asked for
    resumable   INTEGER NOT NULL,             -- 0 when the action holds a secret, which is not written down
    shown       TEXT    NOT NULL,             -- JSON: the decision
    options     TEXT    NOT NULL,             -- JSON: what the command line set
    policy_hash TEXT    NOT NULL,             -- SHA-256 of all layers and settings
    files       TEXT    NOT NULL,             -- JSON: the files it names, with the hashes of their contents
    state       TEXT    NOT NULL,             -- pending, approved, denied, resumed
    answered_at TEXT,
    answer      TEXT                          -- a message to whoever asked
) STRICT;

-- What `log prune` removed. The chain goes on from the hash of the last removed link.
CREATE TABLE prunings (
    id          INTEGER PRIMARY KEY,
    at          TEXT    NOT NULL,
    seq         INTEGER NOT NULL,             -- the last removed link
    hash        TEXT    NOT NULL,             -- its hash
    runs        INTEGER NOT NULL,
    rows        INTEGER NOT NULL,
    reason      TEXT    NOT NULL
) STRICT;

CREATE INDEX pending_approvals_by_state ON pending_approvals (state, id);
CREATE INDEX sandbox_events_by_run ON sandbox_events (run_id);
CREATE INDEX policy_events_by_run ON policy_events (run_id);
