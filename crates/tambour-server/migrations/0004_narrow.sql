-- Bodies of logs in an ordinary table with an index beside it, records in a table of their own.
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

-- What came of a message that has ended, made from its log; version: of the JSON.
create table records (
    message_id text primary key,
    version integer not null,
    body text not null
);
insert into records (message_id, version, body)
    select id, 1, record from messages where record is not null;
create table narrow (
    -- order of arrival
    number integer primary key,
    id text not null unique,
    conversation_id text not null,
    request_id text not null,
    owner text not null,
    created text not null,
    status text not null,
    request text not null
);
insert into narrow (id, conversation_id, request_id, owner, created, status, request)
    select id, conversation_id, request_id, owner, created, status, request from messages order by created, id;
drop table messages;
alter table narrow rename to messages;
create index messages_conversation on messages (conversation_id, number);
create index messages_running on messages (status) where status = 'running';
