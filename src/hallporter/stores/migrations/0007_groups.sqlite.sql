-- What else a group has of its own: its assistant's name, and whose words count.
ALTER TABLE groups ADD COLUMN assistant_name TEXT;
ALTER TABLE groups ADD COLUMN senders TEXT;

-- How our own words are recognised when a network hands them back.
CREATE INDEX outbox_parts_message_id ON outbox_parts (message_id);

-- Files that go along with a message: JSON, the bytes lie in the home.
ALTER TABLE messages ADD COLUMN files TEXT NOT NULL DEFAULT '[]';
CREATE INDEX messages_files ON messages (chat, seq) WHERE files <> '[]';
ALTER TABLE outbox_parts ADD COLUMN files TEXT NOT NULL DEFAULT '[]';
