-- What needs the operator; one row a cause, told once.
CREATE TABLE notices (
    key         TEXT PRIMARY KEY,
    text        TEXT NOT NULL,
    raised_at   TEXT NOT NULL,
    is_quiet    INTEGER NOT NULL DEFAULT 0,
    told_at     TEXT,
    resolved_at TEXT
) STRICT;
CREATE INDEX notices_open ON notices (raised_at) WHERE resolved_at IS NULL;

-- What was removed for good: counts only.
CREATE TABLE removals (
    number INTEGER PRIMARY KEY,
    at     TEXT NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('forget', 'retention')),
    chat   TEXT,
    counts TEXT NOT NULL
) STRICT;
CREATE INDEX removals_reason ON removals (reason, at);
