-- Cards and lorebooks of other programs, as they came.
create table imports (
    number integer primary key,
    id text not null unique,
    owner text not null,
    -- `card` or `lorebook`
    kind text not null,
    -- of the character or the book
    name text not null,
    -- of the file
    file text not null,
    version text not null,
    entries integer not null,
    created text not null,
    size integer not null,
    bytes blob not null
);
create index imports_of_owner on imports (owner, kind, number);
