-- Random id of the holder, who alone gives the access up. Servers of the version before write none: theirs ends with them.
alter table conversation_locks add column holder text;
