-- Browsers that have logged in, and the links that let them in: secrets are kept as hashes only.
CREATE TABLE sessions (
    id         TEXT PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    token      TEXT,
    address    TEXT NOT NULL,
    browser    TEXT NOT NULL,
    created_at TEXT NOT NULL,
    used_at    TEXT NOT NULL,
    revoked_at TEXT
) STRICT;

CREATE TABLE links (
    digest     TEXT PRIMARY KEY,
    expires_at TEXT NOT NULL,
    used_at    TEXT
) STRICT;
