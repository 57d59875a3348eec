-- What a run is one of: `turn`, of the dialogue whose id stands in the place of that of a conversation; absent for a message.
alter table messages add column kind text;
-- The turn in which an input was answered.
alter table repeats add column turn text;
