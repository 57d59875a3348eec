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
    reply: fn(&mut WordSource) -> String,
    /// Kinds of text in which the words must turn up.
    kinds: &'static [WordKind],
}

/// Generators of each dialect. `auto` reads those of all before it, which are the dialects that it may
/// choose.
const REPLY_GENERATORS: &[ReplyGenerator] = &[
    ReplyGenerator {
        dialect: "thinkingml",
        reply: thinkingml_reply,
        kinds: &[Summary, Title, Phase, Final, Query, Draft],
    },
    ReplyGenerator {
        dialect: "jsonseq",
        reply: jsonseq_reply,
        kinds: &[Summary, Title, Phase, Final, Query, Draft],
    },
    ReplyGenerator { dialect: "aiplan", reply: aiplan_reply, kinds: &[Phase, Final, Draft, Args] },
    ReplyGenerator { dialect: "filament", reply: filament_reply, kinds: &[Phase, Final, Aside, Block, Args] },
    ReplyGenerator { dialect: "ai_say", reply: ai_say_reply, kinds: &[Final, Draft, Assessment] },
    ReplyGenerator { dialect: "plain", reply: plain_reply, kinds: &[Phase, Final, Aside] },
    ReplyGenerator {
        dialect: "auto",
        reply: random_reply,
        kinds: &[Summary, Title, Phase, Final, Query, Draft, Aside, Args, Assessment, Block],
    },
    ReplyGenerator { dialect: "toolcall", reply: toolcall_reply, kinds: &[Phase, Final, Aside, Args] },
    ReplyGenerator { dialect: "json_value", reply: json_value_reply, kinds: &[Phase, Final] },
];

fn generator(dialect: &str) -> Option<&'static ReplyGenerator> {
    REPLY_GENERATORS.iter().find(|source| source.dialect == dialect)
}

/// Kinds of text in which words of replies in the dialect must turn up; `None` for a dialect without a
/// generator.
#[must_use]
pub fn word_kinds(dialect: &str) -> Option<&'static [WordKind]> {
    generator(dialect).map(|source| source.kinds)
}

/// Source of replies: a small grammar, and the valid fixtures.
#[derive(Clone, Debug, Default)]
pub struct ReplyPool {
    /// Valid replies with their dialects.
    valid: Vec<(String, String)>,
}

impl ReplyPool {
    /// Loads the valid replies of the fixtures.
    ///
    /// # Errors
    /// Fixtures cannot be read.
    pub fn load() -> Result<ReplyPool, String> {
        let mut valid = Vec::new();
        for fixture in fixture::load_fixtures(&fixtures_folder())? {
            let is_valid = fixture.keys.get("strict").and_then(Value::as_array).is_some_and(Vec::is_empty);
            let is_dialect = DIALECTS.iter().any(|entry| entry.name == fixture.dialect);
            if let (true, true, Ok(reply)) = (is_valid, is_dialect, String::from_utf8(fixture.input)) {
                // Long replies test limits and are slow.
                if (16..4 << 10).contains(&reply.len()) {
                    valid.push((fixture.dialect, reply));
                }
            }
        }
        Ok(ReplyPool { valid })
    }

    /// Makes a reply of the dialect.
    #[must_use]
    pub fn make_reply(&self, dialect: &str, words: &mut WordSource) -> String {
        let is_of_dialect = |(name, _): &&(String, String)| dialect == "auto" || name == dialect;
        let valid: Vec<&(String, String)> = self.valid.iter().filter(is_of_dialect).collect();
        if !valid.is_empty() && words.is_once_in(4) {
            let at = words.below(valid.len());
            return plant_words(&valid[at].1, words);
        }
        generator(dialect).map_or_else(String::new, |source| (source.reply)(words))
    }
}

/// Inserts words where a blank or a Chinese comma is between two letters: these places are text in any
/// dialect.
fn plant_words(reply: &str, words: &mut WordSource) -> String {
    let chars: Vec<char> = reply.chars().collect();
    let letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphabetic());
    let mut out = String::with_capacity(reply.len() * 2);
    let mut tag = false;
    for (at, &c) in chars.iter().enumerate() {
        out.push(c);
        match c {
            '<' => tag = chars.get(at + 1).is_some_and(|next| next.is_ascii_alphabetic() || *next == '/'),
            '>' => tag = false,
            ' ' | '，' | '。'
                if !tag && at > 0 && letter(at - 1) && letter(at + 1) && words.is_once_in(2) =>
            {
                out.push_str(&words.word());
                out.push(' ');
            }
            _ => {}
        }
    }
    out
}

fn random_reply(words: &mut WordSource) -> String {
    let before =
        REPLY_GENERATORS.iter().position(|source| source.dialect == "auto").unwrap_or(REPLY_GENERATORS.len());
    let source = words.below(before);
    (REPLY_GENERATORS[source].reply)(words)
}

/// Reasoning marks, opening and closing.
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
    let space = |words: &mut WordSource| words.pick(&["\n", "\n", "\n\n", ""]);
    for _ in 0..words.below(3) {
        let name = words.pick(&["thought", "thought", "think", "reasoning"]);
        reply += &format!("<{name}>\n{}\n</{name}>{}", words.prose(), space(words));
    }
    for part in 0..1 + words.below(2) {
        if part == 1 && words.is_once_in(2) {
            reply += &filament_block(words);
        }
        let text = words.markdown();
        let comment =
            if words.is_once_in(3) { format!("\n<!-- {} -->\n", words.text_line()) } else { String::new() };
        let details = if words.is_once_in(4) {
            format!("\n<details><summary>{}</summary>\n{}\n</details>\n", words.text_line(), words.prose())
        } else {
            String::new()
        };
        let html =
            if words.is_once_in(4) { format!("\n<b>{}</b> <i>x</i>\n", words.word()) } else { String::new() };
        reply += &format!("<content>\n{text}{comment}{details}{html}\n</content>{}", space(words));
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
            let analysis = if words.is_once_in(3) {
                String::new()
            } else {
                format!("<analysis>{}</analysis>\n", words.text_line())
            };
            let count = 1 + words.below(3);
            let mut json = LooseJsonWriter::new(words, false);
            let mut operations = Vec::new();
            for _ in 0..count {
                let (path, text) = (json.words().word(), json.words().text_line());
                let value =
                    if json.words().is_once_in(4) { json.write_random(1) } else { json.write_string(&text) };
                let op = json.words().pick(&["SET", "PUSH", "SET", "set", "ADD", "NOD"]);
                operations.push(json.write_list(&[format!("\"{op}\""), format!("\"{path}\""), value]));
            }
            format!("<{name}>\n{analysis}{}\n</{name}>\n", json.write_list(&operations))
        }
        2 => {
            let (path, text, why) = (words.word(), words.word(), words.text_line());
            format!("<UpdateVariable>\n_.set('{path}.a', '{text}');//{why}\n</UpdateVariable>\n")
        }
        3 => {
            let text = words.prose();
            let mut json = LooseJsonWriter::new(words, false);
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
            let mut json = LooseJsonWriter::new(words, false);
            let fields = [("title", json.write_string(&text)), ("more", json.write_random(1))];
            let props = json.write_object(&fields);
            format!("<ui_component view=\"panel.note\">\n{props}\n</ui_component>\n")
        }
        _ => format!("<media type=\"image\" src=\"a/b.png\" alt=\"{}\" />\n", words.word()),
    }
}

/// Sometimes makes a leading draft.
fn random_draft(words: &mut WordSource) -> String {
    if !words.is_once_in(3) {
        return String::new();
    }
    let (open, close) = *words.random().pick(REASONING_MARKS);
    let text = words.prose();
    let space = words.pick(&["", "\n", "\n\n"]);
    format!("{open}{text}{close}{space}")
}

/// Sometimes makes prose or a comment outside the structure.
fn random_surrounding_text(words: &mut WordSource) -> String {
    match words.below(12) {
        0 => format!("{}\n\n", words.prose()),
        1 => format!("{}:\n", words.text_line()),
        2 => format!("<!-- {} -->\n", words.text_line()),
        _ => String::new(),
    }
}

/// Puts `reply` in a code fence, once in `times`.
fn fence_reply(words: &mut WordSource, reply: String, language: &str, times: usize) -> String {
    if !words.is_once_in(times) {
        return reply;
    }
    let fence = words.pick(&["```", "```", "````", "~~~"]);
    let language = if words.is_once_in(4) { "" } else { language };
    let line = if words.is_once_in(8) { format!("{language} {}", words.word()) } else { language.to_owned() };
    format!("{fence}{line}\n{reply}\n{fence}")
}

fn thinkingml_reply(words: &mut WordSource) -> String {
    let mut reply = String::new();
    if words.is_once_in(3) {
        reply += &format!("<think>{}</think>\n", words.prose());
    }
    if words.is_once_in(2) {
        reply += &format!("<serp>{}</serp>\n", words.text_line());
    }
    reply += &random_surrounding_text(words);
    reply += "<thinking>\n";
    for id in 1..=1 + words.below(3) {
        let (title, text) = (words.text_line(), words.prose());
        let text = if words.is_once_in(8) { format!("{text} &lt;final&gt; {}", words.word()) } else { text };
        reply += &if words.is_once_in(16) {
            format!("<phase id=\"{id}\" title=\"{title}\">\n{text}\n</phase>\n")
        } else {
            format!("<phase id=\"{id}\">\n<title>{title}</title>\n{text}\n</phase>\n")
        };
    }
    reply += "</thinking>\n<final>\n";
    reply += &words.markdown();
    if !words.is_once_in(4) {
        let queries: Vec<String> = (0..words.below(4)).map(|_| words.query()).collect();
        let queries = queries.iter().map(|query| format!("\"{query}\"")).collect::<Vec<_>>().join(",");
        reply += &format!("\n<!-- <serp_queries>\n[{queries}]\n</serp_queries> -->");
    }
    reply += "\n</final>\n";
    reply = fence_reply(words, reply, "xml", 10);
    let (before, after) = (random_surrounding_text(words), random_surrounding_text(words));
    let before = if words.is_once_in(3) { random_draft(words) + &before } else { before };
    before + &reply + &after
}

fn toolcall_reply(words: &mut WordSource) -> String {
    let mut reply = if words.is_once_in(4) { String::new() } else { plain_format_reply(words, 12) + "\n" };
    let form = words.below(9);
    for _ in 0..words.below(4) {
        // Use another family now and then.
        let form = if words.is_once_in(12) { words.below(9) } else { form };
        reply += &random_call(words, form);
        reply += words.pick(&["\n", "", "\n\n"]);
    }
    if words.is_once_in(3) {
        reply += &words.prose();
    }
    reply
}

/// Makes a call in one of the written forms.
fn random_call(words: &mut WordSource, form: usize) -> String {
    let (text, line) = (words.prose(), words.text_line());
    let mut json = LooseJsonWriter::new(words, false);
    let fields = [("text", json.write_string(&text)), ("more", json.write_random(1))];
    let args = json.write_object(&fields);
    let mut fields = vec![("name", "\"note\"".to_owned()), ("arguments", args.clone())];
    if json.words().is_once_in(12) {
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
    plain_format_reply(words, 3)
}

/// Makes plain text, once in `times` about formats.
fn plain_format_reply(words: &mut WordSource, times: usize) -> String {
    let mut reply = random_draft(words);
    reply += &if words.is_once_in(times) { words.format_answer() } else { words.markdown() };
    if words.is_once_in(4) {
        let (open, close) = *words.random().pick(REASONING_MARKS);
        let text = words.prose();
        let rest = words.markdown();
        reply += &format!("\n{open}{text}{close}\n{rest}");
    }
    reply
}
