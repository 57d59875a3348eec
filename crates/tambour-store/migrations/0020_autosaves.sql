-- Versions that an editor has stored by itself, of which few are kept.
alter table versions add column autosave integer not null default 0;
