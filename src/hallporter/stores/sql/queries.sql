-- Every statement of the house, named, in the subset that SQLite and PostgreSQL both speak.

-- name: chat_seen
INSERT INTO chats (id, channel, account, name, is_group, seen_at)
VALUES (:id, :channel, :account, :name, COALESCE(:is_group, 0), :seen_at)
ON CONFLICT (id) DO UPDATE SET
    name = COALESCE(:name, chats.name),
    is_group = COALESCE(:is_group, chats.is_group),
    seen_at = CASE
        WHEN chats.seen_at IS NULL OR chats.seen_at < :seen_at THEN :seen_at ELSE chats.seen_at
    END;

-- name: chat_get
SELECT * FROM chats WHERE id = :id;

-- name: chat_all
SELECT * FROM chats ORDER BY id;

-- name: chat_raise_head
UPDATE chats SET head = head + 1 WHERE id = :id RETURNING head;

-- name: chat_lock
UPDATE chats SET epoch = epoch WHERE id = :id RETURNING *;

-- name: chat_hold
UPDATE chats SET epoch = epoch WHERE id = :id AND epoch = :epoch RETURNING *;

-- name: chat_save
UPDATE chats SET
    pool = :pool, cursor = :cursor, epoch = :epoch, session_no = :session_no,
    session_id = :session_id, woken_at = :woken_at, not_before = :not_before,
    due_at = :due_at, attempts = :attempts, is_parked = :is_parked, interruptions = :interruptions
WHERE id = :id;

-- name: chat_woken
SELECT * FROM chats WHERE woken_at IS NOT NULL OR due_at IS NOT NULL
ORDER BY COALESCE(due_at, woken_at), id;

-- name: chat_forgotten
SELECT DISTINCT m.chat FROM messages m JOIN chats c ON c.id = m.chat
WHERE m.state = 'queued' AND m.wakes = 1 AND m.seq > c.cursor AND c.woken_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.chat = m.chat AND t.outcome IS NULL);

-- name: chat_unheard
SELECT DISTINCT f.chat FROM firings f JOIN chats c ON c.id = f.chat
WHERE f.state = 'due' AND c.due_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.chat = f.chat AND t.outcome IS NULL);

-- name: message_add
INSERT INTO messages (
    chat, seq, id, ext_id, sender, sender_name, text, at, kind, wakes, why, state, turn,
    covers_after, covers_through, files
) VALUES (
    :chat, :seq, :id, :ext_id, :sender, :sender_name, :text, :at, :kind, :wakes, :why, :state,
    :turn, :covers_after, :covers_through, :files
);

-- name: message_get
SELECT * FROM messages WHERE id = :id;

-- name: message_find
SELECT * FROM messages WHERE id = :name
UNION
SELECT * FROM messages WHERE ext_id = :name
ORDER BY at, seq;

-- name: message_repeat_of
SELECT * FROM messages WHERE chat = :chat AND sender = :sender AND ext_id = :ext_id;

-- name: message_backlog
SELECT * FROM messages
WHERE chat = :chat AND seq > :after AND kind = 'text'
    AND state IN ('waiting', 'queued', 'running', 'failed')
ORDER BY seq;

-- name: message_waiting
SELECT seq, LENGTH(text) AS size, wakes FROM messages
WHERE chat = :chat AND seq > :after AND kind = 'text'
    AND state IN ('waiting', 'queued', 'running', 'failed')
ORDER BY seq;

-- name: message_first_waking
SELECT * FROM messages
WHERE chat = :chat AND seq > :after AND wakes = 1
    AND state IN ('waiting', 'queued', 'running', 'failed')
ORDER BY seq LIMIT 1;

-- name: message_sizes
SELECT seq, LENGTH(text) AS size FROM messages
WHERE chat = :chat AND seq > :after ORDER BY seq LIMIT :limit;

-- name: message_page
SELECT * FROM messages WHERE chat = :chat AND seq > :after AND seq <= :through ORDER BY seq;

-- name: message_between
SELECT id FROM messages
WHERE chat = :chat AND seq > :after AND seq <= :through AND kind = 'text'
ORDER BY seq;

-- name: message_before
SELECT * FROM messages WHERE chat = :chat AND seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: message_mark
UPDATE messages SET state = :state, turn = COALESCE(:turn, turn)
WHERE chat = :chat AND seq > :after AND seq <= :through AND kind = 'text'
    AND state IN (:was0, :was1, :was2, :was3)
RETURNING id;

-- name: message_ignore
UPDATE messages SET state = 'ignored', why = :why
WHERE chat = :chat AND kind = 'text' AND state IN ('waiting', 'queued', 'failed');

-- name: message_replies
SELECT * FROM messages
WHERE chat = :chat AND kind = 'reply' AND seq > :seq
    AND covers_after < :seq AND covers_through >= :seq
ORDER BY seq;

-- name: message_files
SELECT files FROM messages WHERE files <> '[]';

-- name: message_files_in
SELECT files FROM messages WHERE chat = :chat AND files <> '[]' ORDER BY seq DESC;

-- name: message_sent
SELECT text, files FROM messages
WHERE chat = :chat AND seq > :after AND kind = 'reply' AND ext_id LIKE 'cmd:%' AND at >= :since
ORDER BY seq;

-- name: message_counts
SELECT state, COUNT(*) AS count FROM messages
WHERE state IN ('waiting', 'queued', 'running', 'failed') GROUP BY state;

-- name: turn_add
INSERT INTO turns (
    id, chat, epoch, attempt, session_no, waiting_since, started_at, cursor, piped,
    ended_at, outcome, why, task, due
) VALUES (
    :id, :chat, :epoch, :attempt, :session_no, :waiting_since, :started_at, :cursor, :piped,
    :ended_at, :outcome, :why, :task, :due
);

-- name: turn_get
SELECT * FROM turns WHERE id = :id;

-- name: turn_save
UPDATE turns SET piped = :piped, ended_at = :ended_at, outcome = :outcome,
    why = :why
WHERE id = :id;

-- name: turn_note
INSERT INTO turn_notes (turn, at, what, after, through, why)
VALUES (:turn, :at, :what, :after, :through, :why);

-- name: turn_open_in
SELECT * FROM turns WHERE chat = :chat AND outcome IS NULL;

-- name: turn_unfinished
SELECT * FROM turns WHERE outcome IS NULL ORDER BY started_at;

-- name: turn_given
SELECT * FROM turns WHERE chat = :chat AND cursor < :seq AND piped >= :seq ORDER BY epoch;

-- name: turn_last_in
SELECT * FROM turns WHERE chat = :chat ORDER BY epoch DESC LIMIT 1;

-- name: turn_of_tick
SELECT * FROM turns WHERE chat = :chat AND task = :task AND due = :due ORDER BY epoch;

-- name: turn_notes
SELECT * FROM turn_notes WHERE turn = :turn ORDER BY number;

-- name: turn_failures
SELECT * FROM turns WHERE outcome = 'failed' AND ended_at >= :since ORDER BY ended_at DESC LIMIT 200;

-- name: outbox_put
INSERT INTO outbox (key, chat, message, at, state, why)
VALUES (:key, :chat, :message, :at, :state, :why)
ON CONFLICT (key) DO NOTHING RETURNING number;

-- name: outbox_put_part
INSERT INTO outbox_parts (outbox, position, message_id, body, files, state, attempts)
VALUES (:outbox, :position, :message_id, :body, :files, :state, :attempts);

-- name: outbox_has
SELECT 1 AS found FROM outbox WHERE key = :key;

-- name: outbox_pending
SELECT * FROM outbox WHERE chat = :chat AND state = 'pending' ORDER BY number LIMIT :limit;

-- name: outbox_parts
SELECT * FROM outbox_parts WHERE outbox = :outbox ORDER BY position;

-- name: outbox_chats
SELECT DISTINCT chat FROM outbox WHERE state = 'pending';

-- name: outbox_save_part
UPDATE outbox_parts SET state = :state, attempts = :attempts
WHERE outbox = :outbox AND position = :position;

-- name: outbox_finish
UPDATE outbox SET state = :state, why = :why WHERE number = :number;

-- name: outbox_of_message
SELECT * FROM outbox WHERE message = :message;

-- name: outbox_said_as
SELECT o.message FROM outbox_parts p JOIN outbox o ON o.number = p.outbox
WHERE p.message_id = :message_id AND o.chat = :chat LIMIT 1;

-- name: outbox_counts
SELECT state, COUNT(*) AS count FROM outbox WHERE state <> 'sent' GROUP BY state;

-- name: group_add
INSERT INTO groups (
    chat, name, folder, folder_key, trigger_pattern, requires_trigger, is_main, added_at, agent,
    assistant_name, senders
) VALUES (
    :chat, :name, :folder, :folder_key, :trigger_pattern, :requires_trigger, :is_main, :added_at,
    :agent, :assistant_name, :senders
);

-- name: group_save
UPDATE groups SET name = :name, trigger_pattern = :trigger_pattern,
    requires_trigger = :requires_trigger, is_main = :is_main, agent = :agent,
    assistant_name = :assistant_name, senders = :senders
WHERE folder_key = :folder_key;

-- name: group_remove
DELETE FROM groups WHERE folder_key = :folder_key;

-- name: group_leave
INSERT INTO left_folders (folder_key, folder, chat)
SELECT folder_key, folder, chat FROM groups WHERE folder_key = :folder_key;

-- name: group_take_over
DELETE FROM left_folders WHERE folder_key = :folder_key;

-- name: group_left_by
SELECT folder FROM left_folders WHERE chat = :chat ORDER BY folder_key;

-- name: group_forget_left
DELETE FROM left_folders WHERE chat = :chat;

-- name: group_of_chat
SELECT * FROM groups WHERE chat = :chat;

-- name: group_of_folder
SELECT * FROM groups WHERE folder_key = :folder_key;

-- name: group_main
SELECT * FROM groups WHERE is_main = 1;

-- name: group_count
SELECT COUNT(*) AS count FROM groups;

-- name: group_all
SELECT * FROM groups ORDER BY is_main DESC, folder_key;

-- name: token_add
INSERT INTO tokens (id, digest, role, subject, chat, created_at, expires_at, used_at, revoked_at)
VALUES (:id, :digest, :role, :subject, :chat, :created_at, :expires_at, :used_at, :revoked_at);

-- name: token_of_digest
SELECT * FROM tokens WHERE digest = :digest;

-- name: token_get
SELECT * FROM tokens WHERE id = :id;

-- name: token_all
SELECT * FROM tokens ORDER BY created_at, id;

-- name: token_save
UPDATE tokens SET used_at = :used_at, revoked_at = :revoked_at WHERE id = :id;

-- name: session_add
INSERT INTO sessions (id, digest, token, address, browser, created_at, used_at, revoked_at)
VALUES (:id, :digest, :token, :address, :browser, :created_at, :used_at, :revoked_at);

-- name: session_of_digest
SELECT * FROM sessions WHERE digest = :digest;

-- name: session_get
SELECT * FROM sessions WHERE id = :id;

-- name: session_all
SELECT * FROM sessions ORDER BY used_at DESC, id;

-- name: session_save
UPDATE sessions SET used_at = :used_at, revoked_at = :revoked_at WHERE id = :id;

-- name: session_forget
DELETE FROM sessions WHERE revoked_at IS NOT NULL OR used_at < :unused_since;

-- name: link_add
INSERT INTO links (digest, expires_at) VALUES (:digest, :expires_at);

-- name: link_get
SELECT * FROM links WHERE digest = :digest;

-- name: link_use
UPDATE links SET used_at = :used_at WHERE digest = :digest;

-- name: link_forget
DELETE FROM links WHERE expires_at < :before;

-- name: notice_save
INSERT INTO notices (key, text, raised_at, is_quiet, told_at, resolved_at)
VALUES (:key, :text, :raised_at, :is_quiet, :told_at, :resolved_at)
ON CONFLICT (key) DO UPDATE SET
    text = :text, raised_at = :raised_at, is_quiet = :is_quiet, told_at = :told_at,
    resolved_at = :resolved_at;

-- name: notice_get
SELECT * FROM notices WHERE key = :key;

-- name: notice_all
SELECT * FROM notices ORDER BY raised_at, key;

-- name: notice_open
SELECT * FROM notices WHERE resolved_at IS NULL ORDER BY raised_at, key;

-- name: notice_failing
SELECT t.chat, g.folder, t.why,
    CASE WHEN c.is_parked = 1 OR (
        c.woken_at IS NULL
        AND NOT EXISTS (
            SELECT 1 FROM turns r WHERE r.chat = t.chat AND r.outcome IS NULL AND r.task IS NULL
        )
    ) THEN 1 ELSE 0 END AS is_stuck
FROM groups g JOIN chats c ON c.id = g.chat JOIN turns t ON t.chat = g.chat
-- A tick's turn says nothing of the messages; a task that keeps failing has a notice of its own.
WHERE t.epoch = (
        SELECT n.epoch FROM turns n
        WHERE n.chat = g.chat AND n.outcome IS NOT NULL AND n.task IS NULL
        ORDER BY n.epoch DESC LIMIT 1
    )
    AND (t.outcome = 'failed' OR (t.outcome = 'interrupted' AND c.is_parked = 1))
ORDER BY t.chat;

-- name: notice_undelivered
SELECT o.chat, o.why, o.at AS last, (
        SELECT COUNT(*) FROM outbox s
        WHERE s.chat = o.chat AND s.state = 'undeliverable' AND s.at >= :since
    ) AS count
FROM outbox o
WHERE o.state = 'undeliverable' AND o.at >= :since AND NOT EXISTS (
        SELECT 1 FROM outbox n
        WHERE n.chat = o.chat AND n.state = 'undeliverable' AND n.number > o.number
    )
ORDER BY o.chat;

-- name: removal_add
INSERT INTO removals (at, reason, chat, counts) VALUES (:at, :reason, :chat, :counts);

-- name: removal_last
SELECT * FROM removals WHERE reason = :reason ORDER BY at DESC, number DESC LIMIT 1;

-- name: forget_parts
DELETE FROM outbox_parts WHERE outbox IN (SELECT number FROM outbox WHERE chat = :chat);

-- name: forget_outbox
DELETE FROM outbox WHERE chat = :chat RETURNING number;

-- name: forget_notes
DELETE FROM turn_notes WHERE turn IN (SELECT id FROM turns WHERE chat = :chat);

-- name: forget_turns
DELETE FROM turns WHERE chat = :chat RETURNING id;

-- name: forget_messages
DELETE FROM messages WHERE chat = :chat RETURNING id;

-- name: forget_ticks
DELETE FROM firings WHERE task IN (SELECT id FROM tasks WHERE chat = :chat);

-- name: forget_tasks
DELETE FROM tasks WHERE chat = :chat RETURNING id;

-- name: old_messages
SELECT m.id FROM messages m
WHERE m.at < :before
    AND (m.state IS NULL OR m.state NOT IN ('queued', 'running'))
    -- A failed one that is tried again by itself is still needed.
    AND NOT EXISTS (
        SELECT 1 FROM chats c WHERE c.id = m.chat AND m.state = 'failed' AND c.woken_at IS NOT NULL
    )
    AND NOT EXISTS (
        SELECT 1 FROM outbox o WHERE o.message = m.id AND o.state NOT IN ('sent', 'undeliverable')
    )
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.chat = m.chat AND t.outcome IS NULL)
LIMIT :limit;

-- name: droppable
SELECT 1 AS found FROM messages m
WHERE m.id = :message
    AND (m.state IS NULL OR m.state NOT IN ('queued', 'running'))
    -- A failed one that is tried again by itself is still needed.
    AND NOT EXISTS (
        SELECT 1 FROM chats c WHERE c.id = m.chat AND m.state = 'failed' AND c.woken_at IS NOT NULL
    )
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.chat = m.chat AND t.outcome IS NULL);

-- name: drop_parts
DELETE FROM outbox_parts WHERE outbox IN (SELECT number FROM outbox WHERE message = :message);

-- name: drop_outbox
DELETE FROM outbox WHERE message = :message;

-- name: drop_message
DELETE FROM messages WHERE id = :message;

-- name: old_turns
SELECT t.id FROM turns t
WHERE t.outcome IS NOT NULL AND t.ended_at < :before
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.turn = t.id)
LIMIT :limit;

-- name: drop_notes
DELETE FROM turn_notes WHERE turn = :turn;

-- name: drop_turn
DELETE FROM turns WHERE id = :turn;

-- name: forgetting_begin
INSERT INTO begun_forgettings (chat, head, purges, counts)
VALUES (:chat, :head, :purges, :counts)
ON CONFLICT (chat) DO UPDATE
SET head = excluded.head, purges = excluded.purges, counts = excluded.counts;

-- name: forgettings_begun
SELECT * FROM begun_forgettings ORDER BY chat;

-- name: forgetting_finished
DELETE FROM begun_forgettings WHERE chat = :chat;

-- name: scrub_owe
INSERT INTO owed_scrubs (at) VALUES (:at);

-- name: room_take
INSERT INTO owed_scrubs (at) VALUES (:filler) RETURNING number;

-- name: room_give_back
DELETE FROM owed_scrubs WHERE number = :number;

-- name: scrub_owed
SELECT MAX(number) AS number FROM owed_scrubs;

-- name: scrub_done
DELETE FROM owed_scrubs WHERE number <= :number;

-- name: old_ticks
SELECT task, due FROM firings WHERE due < :before AND state NOT IN ('due', 'running')
LIMIT :limit;

-- name: drop_tick
DELETE FROM firings WHERE task = :task AND due = :due;

-- name: drop_commands
DELETE FROM commands WHERE id IN (SELECT id FROM commands WHERE at < :before LIMIT :limit)
RETURNING id;

-- name: task_add
INSERT INTO tasks (
    id, folder, chat, prompt, schedule_type, schedule_value, timezone, context_mode, misfire,
    status, anchor, next_at, last_at, failures, created_at, created_by
) VALUES (
    :id, :folder, :chat, :prompt, :schedule_type, :schedule_value, :timezone, :context_mode,
    :misfire, :status, :anchor, :next_at, :last_at, :failures, :created_at, :created_by
);

-- name: task_get
SELECT * FROM tasks WHERE id = :id;

-- name: task_save
UPDATE tasks SET
    prompt = :prompt, schedule_type = :schedule_type, schedule_value = :schedule_value,
    timezone = :timezone, context_mode = :context_mode, misfire = :misfire, status = :status,
    anchor = :anchor, next_at = :next_at, last_at = :last_at, failures = :failures
WHERE id = :id;

-- name: task_remove
DELETE FROM tasks WHERE id = :id;

-- name: task_all
SELECT * FROM tasks ORDER BY created_at, id;

-- name: task_of_folder
SELECT * FROM tasks WHERE folder = :folder ORDER BY created_at, id;

-- name: task_of_others
SELECT id, folder, chat, SUBSTR(prompt, 1, :words) AS prompt, schedule_type, schedule_value,
    timezone, context_mode, misfire, status, anchor, next_at, last_at, failures, created_at,
    created_by
FROM tasks WHERE folder <> :folder ORDER BY created_at, id;

-- name: task_burden
SELECT COUNT(*) AS tasks, COALESCE(SUM(LENGTH(prompt)), 0) AS words,
    COALESCE(SUM(
        CASE WHEN schedule_type = 'interval' AND status = 'active'
            THEN 60000.0 / CAST(schedule_value AS INTEGER)
            ELSE 0.0
        END
    ), 0.0) AS per_minute
FROM tasks WHERE folder = :folder AND id <> :but;

-- name: task_completed
SELECT id, LENGTH(prompt) AS words FROM tasks
WHERE folder = :folder AND status = 'completed' AND id <> :but ORDER BY created_at, id;

-- name: task_due
SELECT * FROM tasks WHERE next_at <= :now ORDER BY next_at, id LIMIT :limit;

-- name: task_counts
SELECT status, COUNT(*) AS count FROM tasks GROUP BY status ORDER BY status;

-- name: task_next_at
SELECT MIN(next_at) AS next_at FROM tasks WHERE next_at IS NOT NULL;

-- name: task_given_up
SELECT * FROM tasks WHERE failures > 0 AND failures >= :failures AND status = 'paused' ORDER BY id;

-- name: tick_add
INSERT INTO firings (task, due, chat, state, why, started_at, ended_at, attempts)
VALUES (:task, :due, :chat, :state, :why, :started_at, :ended_at, :attempts)
ON CONFLICT (task, due) DO NOTHING RETURNING task;

-- name: tick_get
SELECT * FROM firings WHERE task = :task AND due = :due;

-- name: tick_save
UPDATE firings SET
    state = :state, why = :why, started_at = :started_at, ended_at = :ended_at,
    attempts = :attempts
WHERE task = :task AND due = :due;

-- name: tick_move
UPDATE firings SET due = :to, why = :why
WHERE task = :task AND due = :due
    AND NOT EXISTS (SELECT 1 FROM firings f WHERE f.task = :task AND f.due = :to)
RETURNING task;

-- name: tick_prune
DELETE FROM firings WHERE task = :task AND state NOT IN ('due', 'running') AND due <= (
    SELECT f.due FROM firings f WHERE f.task = :task ORDER BY f.due DESC LIMIT 1 OFFSET :keep
);

-- name: tick_waiting
SELECT * FROM firings WHERE chat = :chat AND state = 'due' ORDER BY due, task LIMIT 1;

-- name: tick_count_waiting
SELECT COUNT(*) AS count FROM firings WHERE chat = :chat AND state = 'due' AND task = :task;

-- name: tick_all
SELECT * FROM firings WHERE task = :task AND (:before IS NULL OR due < :before)
ORDER BY due DESC LIMIT :limit;

-- name: tick_skip_waiting
UPDATE firings SET state = 'skipped', why = :why WHERE task = :task AND state = 'due';

-- name: tick_remove_all
DELETE FROM firings WHERE task = :task;

-- name: command_add
INSERT INTO commands (id, folder, box, name, at, kind, is_ok, why, result)
VALUES (:id, :folder, :box, :name, :at, :kind, :is_ok, :why, :result);

-- name: command_get
SELECT * FROM commands WHERE id = :id;

-- name: command_all
SELECT * FROM commands ORDER BY at DESC, id DESC LIMIT :limit;

-- name: command_of_folder
SELECT * FROM commands WHERE folder = :folder ORDER BY at DESC, id DESC LIMIT :limit;
