-- How a dialogue began: its start, variables, and the dialogue and turn that it was forked from, as JSON; absent for those of before.
alter table dialogues add column origin text;

-- Inputs of dialogues, what each came to, and the state before it, as JSON.
create table dialogue_turns (
    number integer primary key,
    dialogue_id text not null,
    record text not null
);
create index turns_of_dialogue on dialogue_turns (dialogue_id, number);
