-- Version 5: without an index that says what `UNIQUE (run_id, step)` says, and one that no query uses. Every index is one
-- more page that each decision writes.

DROP INDEX steps_by_run;
DROP INDEX policy_events_by_effect;
