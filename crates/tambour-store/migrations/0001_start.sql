-- Messages, their logs, and what is kept besides.
create table conversations (
    id text primary key,
    owner text not null,
    created text not null
);
create index conversations_owner on conversations (owner, created);

create table messages (
    id text primary key,
    conversation_id text not null,
    request_id text not null,
    owner text not null,
    created text not null,
    -- running, completed, failed, cancelled
    status text not null,
    -- what was asked for, as JSON
    request text not null,
    -- materialised from the log when the message ended, as JSON
    record text
);
create index messages_conversation on messages (conversation_id, created);
create index messages_running on messages (status) where status = 'running';

-- Entries that arrived together are one row: numbers first to last, one line each.
create table log (
    message_id text not null,
    first integer not null,
    last integer not null,
    body blob not null,
    primary key (message_id, first)
) without rowid;

create table settings (
    name text primary key,
    value text not null
);

create table keys (
    id text primary key,
    name text not null,
    hash blob not null unique,
    admin integer not null,
    created text not null
);
