-- The session that a dialogue runs, by its name; absent until it is looked up for those of before.
alter table dialogues add column session text;
create index dialogues_without_session on dialogues (number) where session is null;
