-- Answers of requests that made something, for who sends one again (`Idempotency-Key`). They go after a day, and with what
-- they name.
create table kept (
    number integer primary key,
    owner text not null,
    -- method and path
    route text not null,
    -- the client's own word for the request
    word text not null,
    -- SHA-256 of the body
    digest blob not null,
    status integer not null,
    location text,
    -- JSON
    body blob not null,
    created text not null,
    unique (owner, route, word)
);
create index kept_created on kept (created);

-- Ids that an answer names.
create table kept_names (
    name text not null,
    kept integer not null,
    primary key (name, kept)
) without rowid;
create index kept_names_kept on kept_names (kept);
