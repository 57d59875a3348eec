-- The server this database is of, and how often it has started.
create table server (
    id text primary key,
    epoch integer not null,
    created text not null
);

-- Who runs a message: the server, and at which of its starts. Without one: of a version that did not say.
alter table messages add column server text;
alter table messages add column epoch integer;
-- RFC 3339 time until which that server is known to be alive. Absent where the lock of the database says so.
alter table messages add column lease text;
