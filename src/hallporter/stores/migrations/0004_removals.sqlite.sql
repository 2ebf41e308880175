-- Folders of groups that were removed and whose files were kept: a chat that is forgotten takes
-- them along. One that is registered again is no longer left behind.
CREATE TABLE left_folders (
    folder_key TEXT PRIMARY KEY,
    folder     TEXT NOT NULL,
    chat       TEXT NOT NULL REFERENCES chats (id)
) STRICT;
CREATE INDEX left_folders_chat ON left_folders (chat);

-- Removals whose traces are still in the files of the database.
CREATE TABLE owed_scrubs (
    number INTEGER PRIMARY KEY,
    at     TEXT NOT NULL
) STRICT;
