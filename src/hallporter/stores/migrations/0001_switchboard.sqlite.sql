-- Chats and where they stand. Times are ISO text in UTC, fixed width, so that they sort.
CREATE TABLE chats (
    id            TEXT PRIMARY KEY,
    channel       TEXT NOT NULL,
    account       TEXT NOT NULL DEFAULT '',
    name          TEXT,
    is_group      INTEGER NOT NULL DEFAULT 0,
    seen_at       TEXT,
    pool          TEXT NOT NULL DEFAULT 'sandboxes',
    head          INTEGER NOT NULL DEFAULT 0,
    cursor        INTEGER NOT NULL DEFAULT 0,
    epoch         INTEGER NOT NULL DEFAULT 0,
    session_no    INTEGER NOT NULL DEFAULT 0,
    session_id    TEXT,
    woken_at      TEXT,
    not_before    TEXT,
    attempts      INTEGER NOT NULL DEFAULT 0,
    is_parked     INTEGER NOT NULL DEFAULT 0,
    interruptions INTEGER NOT NULL DEFAULT 0,
    CHECK (head >= cursor)
) STRICT;
CREATE INDEX chats_woken ON chats (woken_at) WHERE woken_at IS NOT NULL;

CREATE TABLE messages (
    chat           TEXT NOT NULL REFERENCES chats (id),
    seq            INTEGER NOT NULL,
    id             TEXT NOT NULL UNIQUE,
    ext_id         TEXT NOT NULL,
    sender         TEXT NOT NULL,
    sender_name    TEXT NOT NULL,
    text           TEXT NOT NULL,
    at             TEXT NOT NULL,
    kind           TEXT NOT NULL CHECK (kind IN ('text', 'command', 'reply', 'notice')),
    wakes          INTEGER NOT NULL DEFAULT 0,
    why            TEXT NOT NULL DEFAULT '',
    state          TEXT,
    turn           TEXT,
    covers_after   INTEGER,
    covers_through INTEGER,
    PRIMARY KEY (chat, seq),
    UNIQUE (chat, sender, ext_id),
    -- No message of a person is without a fate.
    CHECK (state IS NOT NULL OR kind IN ('reply', 'notice'))
) STRICT;
CREATE INDEX messages_open ON messages (chat, seq)
    WHERE state IN ('waiting', 'queued', 'running', 'failed');
CREATE INDEX messages_ext_id ON messages (ext_id);
CREATE INDEX messages_turn ON messages (turn) WHERE turn IS NOT NULL;

CREATE TABLE turns (
    id            TEXT PRIMARY KEY,
    chat          TEXT NOT NULL REFERENCES chats (id),
    epoch         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    session_no    INTEGER NOT NULL,
    waiting_since TEXT NOT NULL,
    started_at    TEXT NOT NULL,
    cursor        INTEGER NOT NULL,
    piped         INTEGER NOT NULL,
    ended_at      TEXT,
    outcome       TEXT,
    why           TEXT NOT NULL DEFAULT '',
    CHECK (piped >= cursor),
    UNIQUE (chat, epoch)
) STRICT;
-- At most one turn runs in a chat: the database says so too.
CREATE UNIQUE INDEX turns_open ON turns (chat) WHERE outcome IS NULL;
CREATE INDEX turns_failed ON turns (ended_at) WHERE outcome = 'failed';

CREATE TABLE turn_notes (
    number  INTEGER PRIMARY KEY,
    turn    TEXT NOT NULL REFERENCES turns (id),
    at      TEXT NOT NULL,
    what    TEXT NOT NULL,
    after   INTEGER NOT NULL,
    through INTEGER NOT NULL,
    why     TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX turn_notes_turn ON turn_notes (turn);

CREATE TABLE outbox (
    number  INTEGER PRIMARY KEY,
    key     TEXT NOT NULL UNIQUE,
    chat    TEXT NOT NULL REFERENCES chats (id),
    message TEXT NOT NULL,
    at      TEXT NOT NULL,
    state   TEXT NOT NULL DEFAULT 'pending',
    why     TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX outbox_pending ON outbox (chat, number) WHERE state = 'pending';
CREATE INDEX outbox_unsent ON outbox (state) WHERE state <> 'sent';
CREATE INDEX outbox_message ON outbox (message);

CREATE TABLE outbox_parts (
    outbox     INTEGER NOT NULL REFERENCES outbox (number),
    position   INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    body       TEXT NOT NULL,
    state      TEXT NOT NULL DEFAULT 'pending',
    attempts   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (outbox, position)
) STRICT;

CREATE TABLE groups (
    chat             TEXT PRIMARY KEY REFERENCES chats (id),
    name             TEXT NOT NULL,
    folder           TEXT NOT NULL,
    folder_key       TEXT NOT NULL UNIQUE,
    trigger_pattern  TEXT NOT NULL,
    requires_trigger INTEGER NOT NULL,
    is_main          INTEGER NOT NULL,
    added_at         TEXT NOT NULL,
    agent            TEXT NOT NULL DEFAULT '{}'
) STRICT;
CREATE UNIQUE INDEX groups_main ON groups (is_main) WHERE is_main = 1;

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    digest     TEXT NOT NULL UNIQUE,
    role       TEXT NOT NULL,
    subject    TEXT NOT NULL,
    chat       TEXT,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    used_at    TEXT,
    revoked_at TEXT
) STRICT;
