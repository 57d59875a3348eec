//! Valid or nearly valid replies of every dialect, with marker words in every place that holds text.

mod objects;

use serde_json::Value;
use tambour::dialect::DIALECTS;

use self::objects::{ai_say, aiplan, json_value, jsonseq};
use super::account::Kind::{self, *};
use super::json::Writer;
use super::texts::Words;
use crate::{fixture, folder};

/// Generator of the replies of a dialect.
struct Source {
    dialect: &'static str,
    /// Makes a reply with words wherever the dialect has text.
    reply: fn(&mut Words) -> String,
    /// Kinds of text in which the words must turn up.
    kinds: &'static [Kind],
}

/// Generators of each dialect. `auto` reads those of all before it, which are the dialects that it may
/// choose.
const SOURCES: &[Source] = &[
    Source { dialect: "thinkingml", reply: thinkingml, kinds: &[Summary, Title, Phase, Final, Query, Draft] },
    Source { dialect: "jsonseq", reply: jsonseq, kinds: &[Summary, Title, Phase, Final, Query, Draft] },
    Source { dialect: "aiplan", reply: aiplan, kinds: &[Phase, Final, Draft, Args] },
    Source { dialect: "filament", reply: filament, kinds: &[Phase, Final, Aside, Block, Args] },
    Source { dialect: "ai_say", reply: ai_say, kinds: &[Final, Draft, Assessment] },
    Source { dialect: "plain", reply: plain, kinds: &[Phase, Final, Aside] },
    Source {
        dialect: "auto",
        reply: any,
        kinds: &[Summary, Title, Phase, Final, Query, Draft, Aside, Args, Assessment, Block],
    },
    Source { dialect: "toolcall", reply: toolcall, kinds: &[Phase, Final, Aside, Args] },
    Source { dialect: "json_value", reply: json_value, kinds: &[Phase, Final] },
];

fn source(dialect: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.dialect == dialect)
}

/// Kinds of text in which words of replies in the dialect must turn up; `None` for a dialect without a
/// generator.
#[must_use]
pub fn kinds(dialect: &str) -> Option<&'static [Kind]> {
    source(dialect).map(|source| source.kinds)
}

/// Source of replies: a small grammar, and the valid fixtures.
#[derive(Clone, Debug, Default)]
pub struct Replies {
    /// Valid replies with their dialects.
    valid: Vec<(String, String)>,
}

impl Replies {
    /// Loads the valid replies of the fixtures.
    ///
    /// # Errors
    /// Fixtures cannot be read.
    pub fn load() -> Result<Replies, String> {
        let mut valid = Vec::new();
        for fixture in fixture::load(&folder())? {
            let sound = fixture.written.get("strict").and_then(Value::as_array).is_some_and(Vec::is_empty);
            let known = DIALECTS.iter().any(|entry| entry.name == fixture.dialect);
            if let (true, true, Ok(reply)) = (sound, known, String::from_utf8(fixture.input)) {
                // Long replies test limits and are slow.
                if (16..4 << 10).contains(&reply.len()) {
                    valid.push((fixture.dialect, reply));
                }
            }
        }
        Ok(Replies { valid })
    }

    /// Makes a reply of the dialect.
    #[must_use]
    pub fn reply(&self, dialect: &str, words: &mut Words) -> String {
        let of_dialect = |(name, _): &&(String, String)| dialect == "auto" || name == dialect;
        let valid: Vec<&(String, String)> = self.valid.iter().filter(of_dialect).collect();
        if !valid.is_empty() && words.once_in(4) {
            let at = words.below(valid.len());
            return planted(&valid[at].1, words);
        }
        source(dialect).map_or_else(String::new, |source| (source.reply)(words))
    }
}

/// Inserts words where a blank or a Chinese comma is between two letters: these places are text in any
/// dialect.
fn planted(reply: &str, words: &mut Words) -> String {
    let chars: Vec<char> = reply.chars().collect();
    let letter = |at: usize| chars.get(at).is_some_and(|c| c.is_alphabetic());
    let mut out = String::with_capacity(reply.len() * 2);
    let mut tag = false;
    for (at, &c) in chars.iter().enumerate() {
        out.push(c);
        match c {
            '<' => tag = chars.get(at + 1).is_some_and(|next| next.is_ascii_alphabetic() || *next == '/'),
            '>' => tag = false,
            ' ' | '，' | '。' if !tag && at > 0 && letter(at - 1) && letter(at + 1) && words.once_in(2) => {
                out.push_str(&words.word());
                out.push(' ');
            }
            _ => {}
        }
    }
    out
}

fn any(words: &mut Words) -> String {
    let before = SOURCES.iter().position(|source| source.dialect == "auto").unwrap_or(SOURCES.len());
    let source = words.below(before);
    (SOURCES[source].reply)(words)
}

/// Reasoning marks, opening and closing.
const MARKS: &[(&str, &str)] = &[
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

fn filament(words: &mut Words) -> String {
    let mut reply = String::new();
    let space = |words: &mut Words| words.pick(&["\n", "\n", "\n\n", ""]);
    for _ in 0..words.below(3) {
        let name = words.pick(&["thought", "thought", "think", "reasoning"]);
        reply += &format!("<{name}>\n{}\n</{name}>{}", words.prose(), space(words));
    }
    for part in 0..1 + words.below(2) {
        if part == 1 && words.once_in(2) {
            reply += &filament_block(words);
        }
        let text = words.markdown();
        let comment = if words.once_in(3) { format!("\n<!-- {} -->\n", words.line()) } else { String::new() };
        let details = if words.once_in(4) {
            format!("\n<details><summary>{}</summary>\n{}\n</details>\n", words.line(), words.prose())
        } else {
            String::new()
        };
        let html =
            if words.once_in(4) { format!("\n<b>{}</b> <i>x</i>\n", words.word()) } else { String::new() };
        reply += &format!("<content>\n{text}{comment}{details}{html}\n</content>{}", space(words));
    }
    for _ in 0..words.below(4) {
        reply += &filament_block(words);
    }
    let (before, after) = (outside(words), outside(words));
    before + &fenced(words, reply, "xml", 10) + &after
}

/// Makes a block other than thought and content.
fn filament_block(words: &mut Words) -> String {
    match words.below(9) {
        0 | 1 => {
            let name = words.pick(&["variable_update", "variable_update", "state_update", "UpdateVariable"]);
            let analysis = if words.once_in(3) {
                String::new()
            } else {
                format!("<analysis>{}</analysis>\n", words.line())
            };
            let count = 1 + words.below(3);
            let mut json = Writer::new(words, false);
            let mut operations = Vec::new();
            for _ in 0..count {
                let (path, text) = (json.words().word(), json.words().line());
                let value = if json.words().once_in(4) { json.any(1) } else { json.string(&text) };
                let op = json.words().pick(&["SET", "PUSH", "SET", "set", "ADD", "NOD"]);
                operations.push(json.list(&[format!("\"{op}\""), format!("\"{path}\""), value]));
            }
            format!("<{name}>\n{analysis}{}\n</{name}>\n", json.list(&operations))
        }
        2 => {
            let (path, text, why) = (words.word(), words.word(), words.line());
            format!("<UpdateVariable>\n_.set('{path}.a', '{text}');//{why}\n</UpdateVariable>\n")
        }
        3 => {
            let text = words.prose();
            let mut json = Writer::new(words, false);
            let fields = [("text", json.string(&text)), ("more", json.any(1))];
            let args = json.object(&fields);
            format!("<tool_call name=\"note\">\n{args}\n</tool_call>\n")
        }
        4 => {
            let (mood, place) = (words.line(), words.word());
            format!(
                "<status_bar>\n<mood>{mood}</mood>\n<where>{place}<deep>{}</deep></where>\n</status_bar>\n",
                words.word()
            )
        }
        5 => format!("<details>\n<summary>{}</summary>\n{}\n</details>\n", words.line(), words.markdown()),
        6 => {
            let ask = words.line();
            let options: String = (0..1 + words.below(3))
                .map(|n| format!("<option id=\"o{n}\">{}</option>\n", words.line()))
                .collect();
            format!("<choice>\n<prompt>{ask}</prompt>\n<options>\n{options}</options>\n</choice>\n")
        }
        7 => {
            let text = words.line();
            let mut json = Writer::new(words, false);
            let fields = [("title", json.string(&text)), ("more", json.any(1))];
            let props = json.object(&fields);
            format!("<ui_component view=\"panel.note\">\n{props}\n</ui_component>\n")
        }
        _ => format!("<media type=\"image\" src=\"a/b.png\" alt=\"{}\" />\n", words.word()),
    }
}

/// Sometimes makes a leading draft.
fn draft(words: &mut Words) -> String {
    if !words.once_in(3) {
        return String::new();
    }
    let (open, close) = *words.random().pick(MARKS);
    let text = words.prose();
    let space = words.pick(&["", "\n", "\n\n"]);
    format!("{open}{text}{close}{space}")
}

/// Sometimes makes prose or a comment outside the structure.
fn outside(words: &mut Words) -> String {
    match words.below(12) {
        0 => format!("{}\n\n", words.prose()),
        1 => format!("{}:\n", words.line()),
        2 => format!("<!-- {} -->\n", words.line()),
        _ => String::new(),
    }
}

/// Puts `reply` in a code fence, once in `times`.
fn fenced(words: &mut Words, reply: String, language: &str, times: usize) -> String {
    if !words.once_in(times) {
        return reply;
    }
    let fence = words.pick(&["```", "```", "````", "~~~"]);
    let language = if words.once_in(4) { "" } else { language };
    let line = if words.once_in(8) { format!("{language} {}", words.word()) } else { language.to_owned() };
    format!("{fence}{line}\n{reply}\n{fence}")
}

fn thinkingml(words: &mut Words) -> String {
    let mut reply = String::new();
    if words.once_in(3) {
        reply += &format!("<think>{}</think>\n", words.prose());
    }
    if words.once_in(2) {
        reply += &format!("<serp>{}</serp>\n", words.line());
    }
    reply += &outside(words);
    reply += "<thinking>\n";
    for id in 1..=1 + words.below(3) {
        let (title, text) = (words.line(), words.prose());
        let text = if words.once_in(8) { format!("{text} &lt;final&gt; {}", words.word()) } else { text };
        reply += &if words.once_in(16) {
            format!("<phase id=\"{id}\" title=\"{title}\">\n{text}\n</phase>\n")
        } else {
            format!("<phase id=\"{id}\">\n<title>{title}</title>\n{text}\n</phase>\n")
        };
    }
    reply += "</thinking>\n<final>\n";
    reply += &words.markdown();
    if !words.once_in(4) {
        let queries: Vec<String> = (0..words.below(4)).map(|_| words.query()).collect();
        let queries = queries.iter().map(|query| format!("\"{query}\"")).collect::<Vec<_>>().join(",");
        reply += &format!("\n<!-- <serp_queries>\n[{queries}]\n</serp_queries> -->");
    }
    reply += "\n</final>\n";
    reply = fenced(words, reply, "xml", 10);
    let (before, after) = (outside(words), outside(words));
    let before = if words.once_in(3) { draft(words) + &before } else { before };
    before + &reply + &after
}

fn toolcall(words: &mut Words) -> String {
    let mut reply = if words.once_in(4) { String::new() } else { plain_about(words, 12) + "\n" };
    let form = words.below(9);
    for _ in 0..words.below(4) {
        // Use another family now and then.
        let form = if words.once_in(12) { words.below(9) } else { form };
        reply += &written_call(words, form);
        reply += words.pick(&["\n", "", "\n\n"]);
    }
    if words.once_in(3) {
        reply += &words.prose();
    }
    reply
}

/// Makes a call in one of the written forms.
fn written_call(words: &mut Words, form: usize) -> String {
    let (text, line) = (words.prose(), words.line());
    let mut json = Writer::new(words, false);
    let fields = [("text", json.string(&text)), ("more", json.any(1))];
    let args = json.object(&fields);
    let mut fields = vec![("name", "\"note\"".to_owned()), ("arguments", args.clone())];
    if json.words().once_in(12) {
        fields.push(("why", json.string(&line)));
    }
    let call = json.object(&fields);
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

fn plain(words: &mut Words) -> String {
    plain_about(words, 3)
}

/// Makes plain text, once in `times` about formats.
fn plain_about(words: &mut Words, times: usize) -> String {
    let mut reply = draft(words);
    reply += &if words.once_in(times) { words.about() } else { words.markdown() };
    if words.once_in(4) {
        let (open, close) = *words.random().pick(MARKS);
        let text = words.prose();
        let rest = words.markdown();
        reply += &format!("\n{open}{text}{close}\n{rest}");
    }
    reply
}
