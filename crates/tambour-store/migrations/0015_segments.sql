-- Segments of the journal that the database does not have all of, and their bytes at the last commit.
create table segments (
    number integer primary key,
    length integer not null,
    -- the start of the machine, where a power cut may take what was written
    boot text
);
