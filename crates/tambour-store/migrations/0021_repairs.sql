-- Repairs of each rule in each hour; those of before stand under their day.
alter table repairs rename column day to hour;
