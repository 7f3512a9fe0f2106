-- The first schema. Every later change is a numbered step in `migrations` of store/mod.rs.

CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    started_at  TEXT    NOT NULL,             -- RFC 3339, UTC
    ended_at    TEXT,
    kind        TEXT    NOT NULL,             -- command, agent, hook, mcp
    goal        TEXT,
    root        TEXT    NOT NULL,
    sandbox     TEXT    NOT NULL,
    approval    TEXT    NOT NULL,
    outcome     TEXT                          -- null while it goes on, or if the process died
) STRICT;

-- One tool call, whatever became of it.
CREATE TABLE steps (
    id          INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES runs (id),
    step        INTEGER NOT NULL,             -- 1, 2, … in its run
    at          TEXT    NOT NULL,
    tool        TEXT    NOT NULL,
    tool_call   TEXT    NOT NULL,             -- JSON: what was asked for
    effect      TEXT    NOT NULL,             -- allow, ask, deny
    source      TEXT    NOT NULL,
    code        TEXT,
    verdict     TEXT,
    result      TEXT,                         -- JSON: how it ended; null while it goes on, or if it never ran
    ended_at    TEXT,
    UNIQUE (run_id, step)
) STRICT;

-- Every decision, the silent allows included, and every answer of an approver.
CREATE TABLE policy_events (
    id          INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES runs (id),
    step_id     INTEGER NOT NULL REFERENCES steps (id),
    at          TEXT    NOT NULL,
    kind        TEXT    NOT NULL,             -- decision, answer
    act         TEXT    NOT NULL,             -- read, write, exec, net
    target      TEXT    NOT NULL,
    effect      TEXT    NOT NULL,             -- allow, ask, deny; for an answer: approve, deny, defer
    rule        TEXT,
    layer       TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    reason      TEXT    NOT NULL
) STRICT;

-- What confined a run, what it denied, and what a verification gate printed.
CREATE TABLE sandbox_events (
    id          INTEGER PRIMARY KEY,
    run_id      INTEGER NOT NULL REFERENCES runs (id),
    step_id     INTEGER REFERENCES steps (id),
    at          TEXT    NOT NULL,
    kind        TEXT    NOT NULL,             -- enforced, denial, network, failed, gate_output, gate_phase_failed
    backend     TEXT,
    detail      TEXT    NOT NULL              -- JSON
) STRICT;

-- One link for every row written above, in the order of writing.
CREATE TABLE chain (
    seq         INTEGER PRIMARY KEY,
    tbl         TEXT    NOT NULL,
    row_id      INTEGER NOT NULL,
    content     TEXT    NOT NULL,             -- SHA-256 of the row as JSON
    hash        TEXT    NOT NULL              -- SHA-256 of the hash before, the table, the row and the content
) STRICT;

CREATE INDEX steps_by_run ON steps (run_id, step);
CREATE INDEX policy_events_by_step ON policy_events (step_id);
CREATE INDEX policy_events_by_effect ON policy_events (effect, at);
CREATE INDEX sandbox_events_by_step ON sandbox_events (step_id);
