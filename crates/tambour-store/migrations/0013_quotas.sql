-- What a key may do, as JSON; absent: all.
alter table keys add column limits text;

-- What was asked with each key on each day (UTC).
create table usage (
    key text not null,
    day text not null,
    owner text not null,
    name text not null,
    requests integer not null,
    input_tokens integer not null,
    output_tokens integer not null,
    primary key (day, key)
) without rowid;
