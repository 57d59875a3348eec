-- Replies of each upstream in each hour (UTC): how they ended, tokens, and cost in millionths of the currency's unit.
create table figures (
    hour text not null,
    owner text not null,
    upstream text not null,
    completed integer not null,
    failed integer not null,
    cancelled integer not null,
    repaired integer not null,
    replaced integer not null,
    input_tokens integer not null,
    output_tokens integer not null,
    unpriced_tokens integer not null,
    cost integer not null,
    primary key (hour, owner, upstream)
) without rowid;

-- Times to the first text, in buckets.
create table first_texts (
    hour text not null,
    owner text not null,
    upstream text not null,
    bucket integer not null,
    count integer not null,
    primary key (hour, owner, upstream, bucket)
) without rowid;

-- Repairs of each rule on each day (UTC).
create table repairs (
    day text not null,
    owner text not null,
    rule text not null,
    code text not null,
    count integer not null,
    primary key (day, owner, rule, code)
) without rowid;
