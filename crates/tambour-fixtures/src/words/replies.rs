//! Valid or nearly valid replies of every dialect, with marker words in every place that holds text.

mod objects;

use serde_json::Value;
use tambour::dialect::DIALECTS;

use self::objects::{ai_say_reply, aiplan_reply, json_value_reply, jsonseq_reply};
use super::account::WordKind::{self, *};
use super::json::LooseJsonWriter;
use super::texts::WordSource;
use crate::{fixture, fixtures_folder};

/// Generator of the replies of a dialect.
struct ReplyGenerator {
    dialect: &'static str,
    /// Makes a reply with words wherever the dialect has text.
    make_reply: fn(&mut WordSource) -> String,
    /// Kinds of text in which the words must turn up.
    kinds: &'static [WordKind],
}

/// Generators of all dialects. `auto` may choose any dialect that precedes it in this list, so its replies
/// are made by their generators.
const REPLY_GENERATORS: &[ReplyGenerator] = &[
    ReplyGenerator {
        dialect: "thinkingml",
        make_reply: thinkingml_reply,
        kinds: &[Summary, Title, Phase, Final, Query, Draft],
    },
    ReplyGenerator {
        dialect: "jsonseq",
        make_reply: jsonseq_reply,
        kinds: &[Summary, Title, Phase, Final, Query, Draft],
    },
    ReplyGenerator { dialect: "aiplan", make_reply: aiplan_reply, kinds: &[Phase, Final, Draft, Args] },
    ReplyGenerator {
        dialect: "filament",
        make_reply: filament_reply,
        kinds: &[Phase, Final, Aside, Block, Args],
    },
    ReplyGenerator { dialect: "ai_say", make_reply: ai_say_reply, kinds: &[Final, Draft, Assessment] },
    ReplyGenerator { dialect: "plain", make_reply: plain_reply, kinds: &[Phase, Final, Aside] },
    ReplyGenerator {
        dialect: "auto",
        make_reply: random_reply,
        kinds: &[Summary, Title, Phase, Final, Query, Draft, Aside, Args, Assessment, Block],
    },
    ReplyGenerator { dialect: "toolcall", make_reply: toolcall_reply, kinds: &[Phase, Final, Aside, Args] },
    ReplyGenerator { dialect: "json_value", make_reply: json_value_reply, kinds: &[Phase, Final] },
];

fn find_generator(dialect: &str) -> Option<&'static ReplyGenerator> {
    REPLY_GENERATORS.iter().find(|generator| generator.dialect == dialect)
}

/// Kinds of text in which words of replies in the dialect must turn up; `None` for a dialect without a
/// generator.
#[must_use]
pub fn word_kinds(dialect: &str) -> Option<&'static [WordKind]> {
    find_generator(dialect).map(|generator| generator.kinds)
}

/// Source of valid replies: the generators, and the valid fixtures.
#[derive(Clone, Debug, Default)]
pub struct ReplyPool {
    /// Dialect and text of each valid fixture.
    valid_fixtures: Vec<(String, String)>,
}

impl ReplyPool {
    /// Loads the valid replies of the fixtures.
    ///
    /// # Errors
    /// Fixtures cannot be read.
    pub fn load() -> Result<ReplyPool, String> {
        let mut valid_fixtures = Vec::new();
        for fixture in fixture::load_fixtures(&fixtures_folder())? {
            let is_valid = fixture.keys.get("strict").and_then(Value::as_array).is_some_and(Vec::is_empty);
            let is_dialect = DIALECTS.iter().any(|entry| entry.name == fixture.dialect);
            if let (true, true, Ok(reply)) = (is_valid, is_dialect, String::from_utf8(fixture.input)) {
                // Long replies test limits and are slow; short ones have hardly any text.
                if (16..4 << 10).contains(&reply.len()) {
                    valid_fixtures.push((fixture.dialect, reply));
                }
            }
        }
        Ok(ReplyPool { valid_fixtures })
    }

    /// Makes a reply of the dialect: one in four from a fixture, if there is one, the others with its
    /// generator. The reply is empty if the dialect has no generator.
    #[must_use]
    pub fn make_reply(&self, dialect: &str, words: &mut WordSource) -> String {
        let is_of_dialect = |(name, _): &&(String, String)| dialect == "auto" || name == dialect;
        let fixtures: Vec<&(String, String)> = self.valid_fixtures.iter().filter(is_of_dialect).collect();
        if !fixtures.is_empty() && words.draw_one_in(4) {
            let index = words.below(fixtures.len());
            return plant_words(&fixtures[index].1, words);
        }
        find_generator(dialect).map_or_else(String::new, |generator| (generator.make_reply)(words))
    }
}

/// Inserts words outside tags where a blank or a Chinese punctuation mark is between two letters: these
/// places are text in any dialect.
fn plant_words(reply: &str, words: &mut WordSource) -> String {
    let chars: Vec<char> = reply.chars().collect();
    let is_letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphabetic());
    let mut out = String::with_capacity(reply.len() * 2);
    let mut is_in_tag = false;
    for (at, &c) in chars.iter().enumerate() {
        out.push(c);
        match c {
            '<' => {
                is_in_tag = chars.get(at + 1).is_some_and(|next| next.is_ascii_alphabetic() || *next == '/');
            }
            '>' => is_in_tag = false,
            ' ' | '，' | '。'
                if !is_in_tag && at > 0 && is_letter(at - 1) && is_letter(at + 1) && words.draw_one_in(2) =>
            {
                out.push_str(&words.word());
                out.push(' ');
            }
            _ => {}
        }
    }
    out
}

/// Makes a reply of a random dialect that `auto` may choose.
fn random_reply(words: &mut WordSource) -> String {
    let auto_index = REPLY_GENERATORS.iter().position(|generator| generator.dialect == "auto");
    let index = words.below(auto_index.unwrap_or(REPLY_GENERATORS.len()));
    (REPLY_GENERATORS[index].make_reply)(words)
}

/// Marks before and after reasoning; the most frequent pair is listed three times.
const REASONING_MARKS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<think>", "</think>"),
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<analysis>", "</analysis>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<reflection>", "</reflection>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

fn filament_reply(words: &mut WordSource) -> String {
    let mut reply = String::new();
    let random_space = |words: &mut WordSource| words.pick(&["\n", "\n", "\n\n", ""]);
    for _ in 0..words.below(3) {
        let name = words.pick(&["thought", "thought", "think", "reasoning"]);
        reply += &format!("<{name}>\n{}\n</{name}>{}", words.prose(), random_space(words));
    }
    for part in 0..1 + words.below(2) {
        if part == 1 && words.draw_one_in(2) {
            reply += &filament_block(words);
        }
        let text = words.markdown();
        let comment =
            if words.draw_one_in(3) { format!("\n<!-- {} -->\n", words.text_line()) } else { String::new() };
        let details = if words.draw_one_in(4) {
            format!("\n<details><summary>{}</summary>\n{}\n</details>\n", words.text_line(), words.prose())
        } else {
            String::new()
        };
        let html = if words.draw_one_in(4) {
            format!("\n<b>{}</b> <i>x</i>\n", words.word())
        } else {
            String::new()
        };
        reply += &format!("<content>\n{text}{comment}{details}{html}\n</content>{}", random_space(words));
    }
    for _ in 0..words.below(4) {
        reply += &filament_block(words);
    }
    let (before, after) = (random_surrounding_text(words), random_surrounding_text(words));
    before + &fence_reply(words, reply, "xml", 10) + &after
}

/// Makes a block other than thought and content.
fn filament_block(words: &mut WordSource) -> String {
    match words.below(9) {
        0 | 1 => {
            let name = words.pick(&["variable_update", "variable_update", "state_update", "UpdateVariable"]);
            let analysis = if words.draw_one_in(3) {
                String::new()
            } else {
                format!("<analysis>{}</analysis>\n", words.text_line())
            };
            let count = 1 + words.below(3);
            let mut json = LooseJsonWriter::new(words);
            let mut operations = Vec::new();
            for _ in 0..count {
                let (path, text) = (json.words().word(), json.words().text_line());
                let value =
                    if json.words().draw_one_in(4) { json.write_random(1) } else { json.write_string(&text) };
                let op = json.words().pick(&["SET", "PUSH", "SET", "set", "ADD", "NOD"]);
                operations.push(json.write_list(&[format!("\"{op}\""), format!("\"{path}\""), value]));
            }
            format!("<{name}>\n{analysis}{}\n</{name}>\n", json.write_list(&operations))
        }
        2 => {
            let (path, value, comment) = (words.word(), words.word(), words.text_line());
            format!("<UpdateVariable>\n_.set('{path}.a', '{value}');//{comment}\n</UpdateVariable>\n")
        }
        3 => {
            let text = words.prose();
            let mut json = LooseJsonWriter::new(words);
            let fields = [("text", json.write_string(&text)), ("more", json.write_random(1))];
            let args = json.write_object(&fields);
            format!("<tool_call name=\"note\">\n{args}\n</tool_call>\n")
        }
        4 => {
            let (mood, place) = (words.text_line(), words.word());
            format!(
                "<status_bar>\n<mood>{mood}</mood>\n<where>{place}<deep>{}</deep></where>\n</status_bar>\n",
                words.word()
            )
        }
        5 => {
            format!("<details>\n<summary>{}</summary>\n{}\n</details>\n", words.text_line(), words.markdown())
        }
        6 => {
            let prompt = words.text_line();
            let options: String = (0..1 + words.below(3))
                .map(|n| format!("<option id=\"o{n}\">{}</option>\n", words.text_line()))
                .collect();
            format!("<choice>\n<prompt>{prompt}</prompt>\n<options>\n{options}</options>\n</choice>\n")
        }
        7 => {
            let text = words.text_line();
            let mut json = LooseJsonWriter::new(words);
            let fields = [("title", json.write_string(&text)), ("more", json.write_random(1))];
            let props = json.write_object(&fields);
            format!("<ui_component view=\"panel.note\">\n{props}\n</ui_component>\n")
        }
        _ => format!("<media type=\"image\" src=\"a/b.png\" alt=\"{}\" />\n", words.word()),
    }
}

/// Makes reasoning for the beginning of a reply one time in three, else an empty text.
fn random_draft(words: &mut WordSource) -> String {
    if !words.draw_one_in(3) {
        return String::new();
    }
    let (open, close) = *words.random().pick(REASONING_MARKS);
    let text = words.prose();
    let space = words.pick(&["", "\n", "\n\n"]);
    format!("{open}{text}{close}{space}")
}

/// Makes prose or a comment outside the structure now and then, else an empty text.
fn random_surrounding_text(words: &mut WordSource) -> String {
    match words.below(12) {
        0 => format!("{}\n\n", words.prose()),
        1 => format!("{}:\n", words.text_line()),
        2 => format!("<!-- {} -->\n", words.text_line()),
        _ => String::new(),
    }
}

/// Puts `reply` in a code fence one time in `times`.
fn fence_reply(words: &mut WordSource, reply: String, language: &str, times: usize) -> String {
    if !words.draw_one_in(times) {
        return reply;
    }
    let fence = words.pick(&["```", "```", "````", "~~~"]);
    let language = if words.draw_one_in(4) { "" } else { language };
    let info_string =
        if words.draw_one_in(8) { format!("{language} {}", words.word()) } else { language.to_owned() };
    format!("{fence}{info_string}\n{reply}\n{fence}")
}

fn thinkingml_reply(words: &mut WordSource) -> String {
    let mut reply = String::new();
    if words.draw_one_in(3) {
        reply += &format!("<think>{}</think>\n", words.prose());
    }
    if words.draw_one_in(2) {
        reply += &format!("<serp>{}</serp>\n", words.text_line());
    }
    reply += &random_surrounding_text(words);
    reply += "<thinking>\n";
    for id in 1..=1 + words.below(3) {
        let (title, text) = (words.text_line(), words.prose());
        let text = if words.draw_one_in(8) { format!("{text} &lt;final&gt; {}", words.word()) } else { text };
        reply += &if words.draw_one_in(16) {
            format!("<phase id=\"{id}\" title=\"{title}\">\n{text}\n</phase>\n")
        } else {
            format!("<phase id=\"{id}\">\n<title>{title}</title>\n{text}\n</phase>\n")
        };
    }
    reply += "</thinking>\n<final>\n";
    reply += &words.markdown();
    if !words.draw_one_in(4) {
        let queries: Vec<String> = (0..words.below(4)).map(|_| words.query()).collect();
        let queries = queries.iter().map(|query| format!("\"{query}\"")).collect::<Vec<_>>().join(",");
        reply += &format!("\n<!-- <serp_queries>\n[{queries}]\n</serp_queries> -->");
    }
    reply += "\n</final>\n";
    reply = fence_reply(words, reply, "xml", 10);
    let (before, after) = (random_surrounding_text(words), random_surrounding_text(words));
    let before = if words.draw_one_in(3) { random_draft(words) + &before } else { before };
    before + &reply + &after
}

fn toolcall_reply(words: &mut WordSource) -> String {
    let mut reply =
        if words.draw_one_in(4) { String::new() } else { plain_or_format_reply(words, 12) + "\n" };
    let form = words.below(CALL_FORMS);
    for _ in 0..words.below(4) {
        // A model mixes written forms now and then.
        let form = if words.draw_one_in(12) { words.below(CALL_FORMS) } else { form };
        reply += &random_call(words, form);
        reply += words.pick(&["\n", "", "\n\n"]);
    }
    if words.draw_one_in(3) {
        reply += &words.prose();
    }
    reply
}

/// Number of written forms of [`random_call`].
const CALL_FORMS: usize = 9;

/// Makes a call in a written form, given by its number below [`CALL_FORMS`].
fn random_call(words: &mut WordSource, form: usize) -> String {
    let (text, line) = (words.prose(), words.text_line());
    let mut json = LooseJsonWriter::new(words);
    let fields = [("text", json.write_string(&text)), ("more", json.write_random(1))];
    let args = json.write_object(&fields);
    let mut fields = vec![("name", "\"note\"".to_owned()), ("arguments", args.clone())];
    if json.words().draw_one_in(12) {
        fields.push(("why", json.write_string(&line)));
    }
    let call = json.write_object(&fields);
    match form {
        0 => format!("<tool_call>\n{call}\n</tool_call>"),
        1 => format!("[TOOL_CALLS]note[ARGS]{args}"),
        2 => format!("[TOOL_CALLS] [{call}]"),
        3 => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>note\n```json\n{args}\n```\
             <｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        4 => format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.note:0<|tool_call_argument_begin|>{args}\
             <|tool_call_end|><|tool_calls_section_end|>"
        ),
        5 => format!("<|channel|>commentary to=functions.note <|constrain|>json<|message|>{args}<|call|>"),
        6 => format!(
            "<tool_call>\n<function=note>\n<parameter=text>\n{line}\n</parameter>\n</function>\n</tool_call>"
        ),
        7 => format!("<tool_call>note\n<arg_key>text</arg_key>\n<arg_value>{line}</arg_value>\n</tool_call>"),
        _ => format!("<|python_start|>[note(text=\"{}\", n=1)]<|python_end|>", line.replace(['"', '\\'], "")),
    }
}

fn plain_reply(words: &mut WordSource) -> String {
    plain_or_format_reply(words, 3)
}

/// Makes a plain reply, with reasoning now and then. One time in `times` it is about formats.
fn plain_or_format_reply(words: &mut WordSource, times: usize) -> String {
    let mut reply = random_draft(words);
    reply += &if words.draw_one_in(times) { words.format_answer() } else { words.markdown() };
    if words.draw_one_in(4) {
        let (open, close) = *words.random().pick(REASONING_MARKS);
        let text = words.prose();
        let answer = words.markdown();
        reply += &format!("\n{open}{text}{close}\n{answer}");
    }
    reply
}
