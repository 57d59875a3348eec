-- Conversations and messages in the order in which they came, bodies of logs in an ordinary table with an index beside it,
-- and what came of a message in a table of its own.
create table narrow (
    number integer primary key,
    id text not null unique,
    owner text not null,
    created text not null,
    title text,
    -- JSON object
    metadata text
);
insert into narrow (id, owner, created) select id, owner, created from conversations order by created, id;
drop table conversations;
alter table narrow rename to conversations;
create index conversations_owner on conversations (owner, number);

create table entries (
    message_id text not null,
    first integer not null,
    last integer not null,
    body blob not null
);
insert into entries (message_id, first, last, body)
    select message_id, first, last, body from log order by message_id, first;
create unique index entries_place on entries (message_id, first);
drop table log;

-- Made from the log when a message has ended. version: of the JSON; size: bytes of all that is kept of the message.
-- turn: what the message adds to its conversation; summary: the record without what is in details (events, findings).
create table records (
    message_id text primary key,
    version integer not null,
    size integer not null,
    turn text,
    summary text not null,
    details text
);
insert into records (message_id, version, size, summary, details)
    select id, 1, length(record) + length(request), json_remove(record, '$.events', '$.findings'),
        json_object('events', json_extract(record, '$.events'), 'findings', json_extract(record, '$.findings'))
    from messages where record is not null;

create table narrow (
    number integer primary key,
    id text not null unique,
    conversation_id text not null,
    request_id text not null,
    owner text not null,
    created text not null,
    -- running, completed, failed, cancelled
    status text not null,
    -- what was asked for, as JSON
    request text not null,
    -- the client's own word for the request
    repeat text
);
insert into narrow (id, conversation_id, request_id, owner, created, status, request)
    select id, conversation_id, request_id, owner, created, status, request from messages order by created, id;
drop table messages;
alter table narrow rename to messages;
create index messages_conversation on messages (conversation_id, number);
create index messages_running on messages (status) where status = 'running';
create index messages_owner on messages (owner, number);
create index messages_repeat on messages (owner, repeat) where repeat is not null;

-- Keys that were there are owners of their own.
alter table keys add column owner text not null default '';
update keys set owner = id;
