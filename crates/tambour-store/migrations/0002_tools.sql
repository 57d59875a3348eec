-- Tools that an owner has registered.
create table tools (
    owner text not null,
    name text not null,
    created text not null,
    changed text not null,
    -- description, schema, callers and so on, as JSON; no secrets
    definition text not null,
    -- signs what the webhook is sent; never shown
    secret text,
    primary key (owner, name)
) without rowid;
