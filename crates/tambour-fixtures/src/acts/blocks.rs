//! Blocks that act, valid ones and those whose own text is at fault.

use super::action::level;
use super::replies::Zone;
use crate::words::json::LooseJsonWriter;
use crate::words::{WordSource, find_words};

/// A block as it is written.
pub(super) struct Written {
    pub(super) text: String,
    /// Bytes of it that must have come before it may act.
    pub(super) whole: usize,
    /// [`Zone::Plain`], or what is wrong with it.
    pub(super) fault: Zone,
    /// True of a block that is only shown: as much of it as there is, where the reply ended by itself (F-204).
    pub(super) shown: bool,
    /// Name of the written form of a call; empty for all else.
    pub(super) form: &'static str,
}

impl Written {
    fn new(text: String, whole: usize, fault: Zone) -> Written {
        Written { text, whole, fault, shown: false, form: "" }
    }

    fn shown(text: String) -> Written {
        Written { whole: text.len(), text, fault: Zone::Plain, shown: true, form: "" }
    }

    /// On one line, for places that end with it.
    pub(super) fn flat(mut self) -> Written {
        self.text = self.text.replace('\n', " ");
        self
    }
}

/// Values that are written in a way of which only a guess can be read. `@` is a marker word.
const GUESSES: &[&str] = &[
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "100 - 30",
    "2 * 50",
    "@ said so",
    "go to @",
    "\"say \"@\" twice\"",
    "\"@\" + \"b\"",
    "\"@, \"x\"",
];

/// A value that only a guess can be read of.
fn guess(words: &mut WordSource) -> String {
    let guess = words.pick(GUESSES);
    if guess.contains('@') { guess.replace('@', &words.word()) } else { guess.to_owned() }
}

/// The fault of a block, of those that its kind knows: most have none.
fn fault(words: &mut WordSource, known: &[Zone]) -> Zone {
    if words.is_once_in(3) { *words.random().pick(known) } else { Zone::Plain }
}

/// A block of Filament.
pub(super) fn filament(words: &mut WordSource) -> Written {
    match words.below(8) {
        0 | 1 => update(words),
        2 => commands(words),
        3 | 4 => {
            let call = call_fields(words);
            let (name, args) = (&call.name, &call.args);
            let text = format!("<tool_call name=\"{name}\">\n{args}\n</tool_call>");
            let whole = text.len() - "\n</tool_call>".len();
            Written::new(text, whole, call.fault)
        }
        5 => {
            let (mood, place) = (words.text_line(), words.word());
            let text = format!("<status_bar>\n<mood>{mood}</mood>\n<where>{place}</where>\n</status_bar>");
            Written::shown(text)
        }
        6 => {
            let ask = words.text_line();
            let options: String = (0..1 + words.below(3))
                .map(|number| format!("<option id=\"o{number}\">{}</option>\n", words.text_line()))
                .collect();
            let text = format!("<choice>\n<prompt>{ask}</prompt>\n<options>\n{options}</options>\n</choice>");
            Written::shown(text)
        }
        _ => {
            let line = words.text_line();
            let mut json = LooseJsonWriter::new(words, false);
            let fields = [("title", json.write_string(&line)), ("more", json.write_random(1))];
            let props = json.write_object(&fields);
            let text = format!("<ui_component view=\"panel.note\">\n{props}\n</ui_component>");
            Written::shown(text)
        }
    }
}

/// Operations, one of which may hold a guess; then it is the only one, since it is refused alone (R-81).
fn update(words: &mut WordSource) -> Written {
    let fault = fault(words, &[Zone::Guessed]);
    let name = words.pick(&["variable_update", "state_update", "UpdateVariable"]);
    let analysis = if words.is_once_in(2) {
        format!("<analysis>{}</analysis>\n", words.text_line())
    } else {
        String::new()
    };
    let mut json = LooseJsonWriter::new(words, false);
    let count = if fault == Zone::Plain { 1 + json.words().below(3) } else { 1 };
    let mut operations = Vec::new();
    for _ in 0..count {
        let (path, line) = (json.words().word(), json.words().text_line());
        let value = match fault {
            Zone::Guessed => guess(json.words()),
            _ if json.words().is_once_in(3) => json.write_random(1),
            _ => json.write_string(&line),
        };
        let op = json.words().pick(&["SET", "PUSH"]);
        operations.push(json.write_list(&[format!("\"{op}\""), format!("\"{path}\""), value]));
    }
    let list = json.write_list(&operations);
    let text = format!("<{name}>\n{analysis}{list}\n</{name}>");
    let whole = text.len() - format!("\n</{name}>").len();
    Written::new(text, whole, fault)
}

/// Commands, each of which stands alone.
fn commands(words: &mut WordSource) -> Written {
    let (path, text, why) = (words.word(), words.word(), words.text_line());
    let text = format!("<UpdateVariable>\n_.set('{path}.a', '{text}');//{why}\n</UpdateVariable>");
    let whole = text.find("//").unwrap_or(text.len());
    Written::new(text, whole, Zone::Plain)
}

struct CallFields {
    name: &'static str,
    args: String,
    fault: Zone,
}

/// Name and arguments of a call.
fn call_fields(words: &mut WordSource) -> CallFields {
    let fault = fault(words, &[Zone::Guessed, Zone::Doubled, Zone::Unregistered]);
    let name = if fault == Zone::Unregistered { "wipe" } else { "note" };
    let (prose, line) = (words.prose(), words.text_line());
    let mut json = LooseJsonWriter::new(words, false);
    let text = json.write_string(&prose);
    let mut fields = vec![("text", text)];
    match fault {
        Zone::Guessed => fields.push(("more", guess(json.words()))),
        Zone::Doubled => fields.push(("text", json.write_string(&line))),
        _ => fields.push(("more", json.write_random(1))),
    }
    if json.words().is_once_in(2) {
        fields.reverse();
    }
    CallFields { name, args: json.write_object(&fields), fault }
}

/// Forms of calls that model families write.
pub const FORMS: &[&str] = &[
    "hermes",
    "mistral",
    "mistral_list",
    "deepseek",
    "kimi",
    "harmony",
    "llama_json",
    "qwen3_coder",
    "function",
    "glm",
    "python",
    "dsml",
    "minimax",
];

/// A call in the form of a model family. `spans`: it is to stand in a code span, so that it holds no backticks.
pub(super) fn toolcall(words: &mut WordSource, spans: bool) -> Written {
    let form = match words.pick(FORMS) {
        "deepseek" if spans => "hermes",
        form => form,
    };
    let written = match form {
        "qwen3_coder" | "function" | "glm" | "python" => tagged_call(words, form),
        "dsml" => element_calls(words, &DSML),
        "minimax" => element_calls(words, &MINIMAX),
        _ => json_call(words, form),
    };
    Written { form, ..written }
}

/// A call whose arguments are a JSON object.
fn json_call(words: &mut WordSource, form: &str) -> Written {
    let CallFields { name, args, mut fault } = call_fields(words);
    let mut call = format!("{{\"name\": \"{name}\", \"arguments\": {args}}}");
    if fault == Zone::Plain && matches!(form, "hermes" | "mistral_list") && words.is_once_in(8) {
        // R-95: two names, one of which might be the right one.
        call = format!("{{\"name\": \"other\", \"name\": \"{name}\", \"arguments\": {args}}}");
        fault = Zone::Doubled;
    }
    let text = match form {
        "hermes" => format!("<tool_call>\n{call}\n</tool_call>"),
        "mistral" => format!("[TOOL_CALLS]{name}[ARGS]{args}"),
        "mistral_list" => format!("[TOOL_CALLS] [{call}]"),
        "deepseek" => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{args}\n```\
             <｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        "kimi" => format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>\
             {args}<|tool_call_end|><|tool_calls_section_end|>"
        ),
        "llama_json" => format!("<function={name}>{args}</function>"),
        _ => format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{args}<|call|>"),
    };
    let whole = text.rfind(&args).map_or(text.len(), |at| at + args.len());
    Written::new(text, whole, fault)
}

/// A call whose arguments stand between tags, or in code of Python.
fn tagged_call(words: &mut WordSource, form: &str) -> Written {
    let fault = fault(words, &[Zone::Doubled, Zone::Unregistered]);
    let name = if fault == Zone::Unregistered { "wipe" } else { "note" };
    let (line, again) = (words.text_line(), words.text_line());
    let twice = fault == Zone::Doubled;
    let text = match form {
        "qwen3_coder" | "function" => {
            let parameter = |line: &str| format!("<parameter=text>\n{line}\n</parameter>\n");
            let again = if twice { parameter(&again) } else { String::new() };
            let function = format!("<function={name}>\n{}{again}</function>", parameter(&line));
            if form == "function" { function } else { format!("<tool_call>\n{function}\n</tool_call>") }
        }
        "glm" => {
            let parameter = |line: &str| format!("<arg_key>text</arg_key>\n<arg_value>{line}</arg_value>\n");
            let again = if twice { parameter(&again) } else { String::new() };
            format!("<tool_call>{name}\n{}{again}</tool_call>", parameter(&line))
        }
        _ => {
            let bare = |line: &str| line.replace(['"', '\\'], "");
            let again = if twice { format!("text=\"{}\", ", bare(&again)) } else { String::new() };
            format!("<|python_start|>[{name}(text=\"{}\", {again}n=1)]<|python_end|>", bare(&line))
        }
    };
    let end = ["</parameter>\n</function>", "</arg_value>\n</tool_call>", ")]<|python_end|>"];
    let whole = end.iter().find_map(|end| text.rfind(end)).unwrap_or(text.len());
    Written::new(text, whole, fault)
}

/// Marks of calls that are elements.
struct Elements {
    open: &'static str,
    close: &'static str,
    /// Mark in front of the names of tools and arguments.
    mark: &'static str,
    /// True if arguments declare whether their value is a text; other values are JSON.
    typed: bool,
}

const DSML: Elements = Elements {
    open: "<｜DSML｜function_calls>",
    close: "</｜DSML｜function_calls>",
    mark: "｜DSML｜",
    typed: true,
};

const MINIMAX: Elements =
    Elements { open: "<minimax:tool_call>", close: "</minimax:tool_call>", mark: "", typed: false };

impl Elements {
    fn argument(&self, name: &str, value: &str, string: bool) -> String {
        let mark = self.mark;
        let kind = if self.typed { format!(" string=\"{string}\"") } else { String::new() };
        format!("<{mark}parameter name=\"{name}\"{kind}>{value}</{mark}parameter>\n")
    }
}

/// Calls that are elements: one or two, one if it is at fault, since the other runs all the same.
fn element_calls(words: &mut WordSource, elements: &Elements) -> Written {
    let Elements { open, close, mark, typed } = elements;
    let known: &[Zone] = match typed {
        true => &[Zone::Guessed, Zone::Doubled, Zone::Unregistered],
        false => &[Zone::Doubled, Zone::Unregistered],
    };
    let fault = fault(words, known);
    let name = if fault == Zone::Unregistered { "wipe" } else { "note" };
    let count = if fault == Zone::Plain && words.is_once_in(3) { 2 } else { 1 };
    let mut calls = String::new();
    for _ in 0..count {
        let text = words.prose();
        let mut arguments = vec![elements.argument("text", &text, true)];
        match fault {
            Zone::Guessed => arguments.push(elements.argument("more", &guess(words), false)),
            Zone::Doubled => arguments.push(elements.argument("text", &words.text_line(), true)),
            _ if words.is_once_in(2) => {
                let more = LooseJsonWriter::new(words, false).write_random(1);
                arguments.push(elements.argument("more", &more, false));
            }
            _ => {}
        }
        if words.is_once_in(2) {
            arguments.reverse();
        }
        calls += &format!("<{mark}invoke name=\"{name}\">\n{}</{mark}invoke>\n", arguments.concat());
    }
    let text = format!("{open}\n{calls}{close}");
    let whole = text.rfind(&format!("</{mark}parameter>")).unwrap_or(text.len());
    Written::new(text, whole, fault)
}

/// A plan that calls a tool.
pub(super) fn plan(words: &mut WordSource) -> Written {
    let CallFields { name, args, mut fault } = call_fields(words);
    let mut call = vec![("name", format!("\"{name}\"")), ("args", args)];
    let mut mode = vec![("response_mode", "\"TOOL_EXECUTION\"".to_owned())];
    let mut wrapped = false;
    if fault == Zone::Plain && words.is_once_in(4) {
        fault = Zone::Doubled;
        match words.below(3) {
            0 => call.insert(0, ("name", "\"other\"".to_owned())),
            1 => mode.insert(0, ("response_mode", "\"KNOWLEDGE_QA\"".to_owned())),
            _ => (fault, wrapped) = (Zone::Wrapped, true),
        }
    }
    let thought = words.text_line();
    let mut json = LooseJsonWriter::new(words, false);
    let mut fields = vec![("thought", json.write_string(&thought))];
    fields.append(&mut mode);
    fields.push(("direct_response", "null".to_owned()));
    let call = json.write_object(&call);
    fields.push(("tool_calls", json.write_list(&[call])));
    let mut text = json.write_object(&fields);
    if wrapped {
        text = json.write_object(&[("wrong_output", text)]);
    }
    let whole = text.len();
    Written::new(text, whole, fault)
}

/// An answer that ends a round.
pub(super) fn answer(words: &mut WordSource) -> Written {
    let number = words.word();
    let number = find_words(number.as_bytes()).next().map_or(0, |(_, word)| word);
    let (line, reason, message) = (words.text_line(), words.text_line(), words.text_line());
    let mut json = LooseJsonWriter::new(words, false);
    let assessment = [
        ("understanding_level", level(number)),
        ("has_questions", "false".to_owned()),
        ("expressed_understanding", "true".to_owned()),
        ("reasoning", json.write_string(&line)),
    ];
    let assessment = json.write_object(&assessment);
    let message = json.write_string(&message);
    let response = json.write_object(&[("咨询师", message)]);
    let mut fields = vec![
        ("assessment", assessment),
        ("response", response),
        ("should_exit", "true".to_owned()),
        ("exit_reason", json.write_string(&reason)),
    ];
    let at = json.words().below(fields.len());
    fields.rotate_left(at);
    let text = json.write_object(&fields);
    let whole = text.len();
    Written::new(text, whole, Zone::Plain)
}
