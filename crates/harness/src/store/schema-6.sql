-- Version 6: decisions that wait in a file beside the trace to be brought in, and how far that was done.

-- One row, once there is such a file.
CREATE TABLE spool (
    id          INTEGER PRIMARY KEY,          -- 1
    at          TEXT    NOT NULL,             -- when it was brought in last
    last        TEXT    NOT NULL,             -- the link of the last line that was brought in
    runs        INTEGER NOT NULL,             -- how many runs were brought in so far
    faults      INTEGER NOT NULL,             -- how often the file was not as it was written
    fault       TEXT                          -- what was wrong the first time
) STRICT;
