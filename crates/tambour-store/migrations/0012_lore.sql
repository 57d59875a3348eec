-- What entries of world info did in earlier turns of conversations: which stay active, and which rest.
create table lore (
    number integer primary key,
    conversation_id text not null unique,
    -- JSON, by the id of an entry
    timed text not null
);
