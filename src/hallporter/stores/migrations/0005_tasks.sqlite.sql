-- Standing prompts, and one row for each due time: written before anything runs.
CREATE TABLE tasks (
    id             TEXT PRIMARY KEY,
    folder         TEXT NOT NULL,
    chat           TEXT NOT NULL REFERENCES chats (id),
    prompt         TEXT NOT NULL,
    schedule_type  TEXT NOT NULL CHECK (schedule_type IN ('cron', 'interval', 'once')),
    schedule_value TEXT NOT NULL,
    timezone       TEXT NOT NULL,
    context_mode   TEXT NOT NULL CHECK (context_mode IN ('group', 'isolated')),
    misfire        TEXT NOT NULL CHECK (misfire IN ('once', 'skip', 'all')),
    status         TEXT NOT NULL CHECK (status IN ('active', 'paused', 'completed')),
    anchor         TEXT NOT NULL,
    next_at        TEXT,
    last_at        TEXT,
    failures       INTEGER NOT NULL DEFAULT 0,
    created_at     TEXT NOT NULL,
    created_by     TEXT NOT NULL,
    -- Only an active task has a next time.
    CHECK (next_at IS NULL OR status = 'active')
) STRICT;
CREATE INDEX tasks_next ON tasks (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX tasks_failing ON tasks (failures) WHERE failures > 0;
CREATE INDEX tasks_folder ON tasks (folder);
CREATE INDEX tasks_chat ON tasks (chat);

CREATE TABLE firings (
    task       TEXT NOT NULL REFERENCES tasks (id),
    due        TEXT NOT NULL,
    chat       TEXT NOT NULL REFERENCES chats (id),
    state      TEXT NOT NULL
        CHECK (state IN ('due', 'running', 'ran', 'late', 'skipped', 'failed')),
    why        TEXT NOT NULL DEFAULT '',
    started_at TEXT,
    ended_at   TEXT,
    attempts   INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task, due)
) STRICT;
CREATE INDEX firings_due ON firings (chat, due) WHERE state = 'due';

-- Since when a tick waits for a claim: it goes before the backlog, and past its backoff.
ALTER TABLE chats ADD COLUMN due_at TEXT;
CREATE INDEX chats_due ON chats (due_at) WHERE due_at IS NOT NULL;

-- A turn serves a backlog, or one tick of a task.
ALTER TABLE turns ADD COLUMN task TEXT;
ALTER TABLE turns ADD COLUMN due TEXT;
