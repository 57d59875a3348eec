-- Texts with versions: dialogue scripts and prompt templates.
create table documents (
    owner text not null,
    -- `script` or `template`
    kind text not null,
    id text not null,
    name text not null,
    created text not null,
    changed text not null,
    -- the version in use; null while there are only drafts
    published integer,
    primary key (owner, kind, id)
) without rowid;

create table versions (
    owner text not null,
    kind text not null,
    id text not null,
    version integer not null,
    created text not null,
    -- SHA-256 of the text
    hash text not null,
    text text not null,
    primary key (owner, kind, id, version)
);

-- Runs of scripts.
create table dialogues (
    number integer primary key,
    id text not null unique,
    owner text not null,
    created text not null,
    changed text not null,
    script_id text not null,
    version integer not null,
    -- the script as it was, to the end of the dialogue
    script text not null,
    status text not null,
    -- the state of the machine, as JSON
    state text not null
);
create index dialogues_of_owner on dialogues (owner, number);

-- What was asked and answered in each call of a model.
create table rounds (
    number integer primary key,
    dialogue_id text not null,
    record text not null
);
create index rounds_of_dialogue on rounds (dialogue_id, number);

-- Answers to requests that may come again.
create table repeats (
    owner text not null,
    repeat text not null,
    created text not null,
    -- route and body
    request text not null,
    status integer not null,
    answer text not null,
    primary key (owner, repeat)
) without rowid;
