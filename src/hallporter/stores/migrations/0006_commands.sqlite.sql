-- What agents asked the host to do, once each: the row commits with the effect, and stays.
CREATE TABLE commands (
    id     TEXT PRIMARY KEY,
    folder TEXT NOT NULL,
    box    TEXT NOT NULL CHECK (box IN ('messages', 'tasks')),
    name   TEXT NOT NULL,
    at     TEXT NOT NULL,
    kind   TEXT NOT NULL,
    is_ok  INTEGER NOT NULL,
    why    TEXT NOT NULL DEFAULT '',
    result TEXT NOT NULL
) STRICT;
CREATE INDEX commands_folder ON commands (folder, at);
CREATE INDEX commands_at ON commands (at);
