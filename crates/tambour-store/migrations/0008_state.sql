-- States of conversations.
create table states (
    number integer primary key,
    conversation_id text not null unique,
    -- JSON Schema that updates must satisfy
    schema text,
    -- the state before the first update that can be taken back, and the place of the last one that is a part of it; -1 of none
    base text not null default '{}',
    floor integer not null default -1,
    -- the state after the update of that position; what came later is applied to it when it is read
    present text not null default '{}',
    upto integer not null default 0
);

-- What was applied to them, as it is on the logs of messages.
create table state_updates (
    -- the message, or a word of its own for what came by the route
    id text not null,
    -- which one of the message, from 0
    number integer not null,
    conversation_id text not null,
    -- order within the conversation
    position integer not null,
    -- number of the message, or of the last one before it
    place integer not null,
    -- it lies before the base
    passed integer not null default 0,
    created text not null,
    applied text not null,
    primary key (id, number)
);
create index state_updates_of_conversation on state_updates (conversation_id, position);
