-- Chats whose forgetting has begun: their rows are gone, their files are to follow. A host that was
-- cut short in between finishes at its next start, unless someone has spoken since (`head`).
CREATE TABLE begun_forgettings (
    chat   TEXT PRIMARY KEY REFERENCES chats (id),
    head   INTEGER NOT NULL,
    purges INTEGER NOT NULL,
    counts TEXT NOT NULL
) STRICT;
