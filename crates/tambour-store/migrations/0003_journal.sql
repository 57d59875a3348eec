-- What arrived of all running messages since their last row in `log`, one row a commit. Replayed at the start.
create table journal (
    id integer primary key,
    body blob not null
);
