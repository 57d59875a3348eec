//! Random blocks for replies. A block is a piece of a reply that acts or shows something, such as a tool call
//! or a status bar; some blocks have a fault in their own text.

use super::action::encode_as_level;
use super::replies::BlockZone;
use crate::words::json::LooseJsonWriter;
use crate::words::{WordSource, find_words};

/// Text of a block, before it is put into a reply.
pub(super) struct WrittenBlock {
    pub(super) text: String,
    /// Number of bytes of `text` that must have arrived before the block may act.
    pub(super) needed_len: usize,
    /// Fault in the text of the block; [`BlockZone::Plain`] if there is none.
    pub(super) fault: BlockZone,
    /// True if the block only shows something and never acts. If the reply ends cleanly inside it, the part
    /// written so far is still shown (F-204).
    pub(super) is_display_only: bool,
    /// Written form of a call, one of [`FORMS`]; empty for other blocks.
    pub(super) form: &'static str,
}

impl WrittenBlock {
    fn new(text: String, needed_len: usize, fault: BlockZone) -> WrittenBlock {
        WrittenBlock { text, needed_len, fault, is_display_only: false, form: "" }
    }

    /// Makes a block that only shows something.
    fn for_display(text: String) -> WrittenBlock {
        let needed_len = text.len();
        WrittenBlock { is_display_only: true, ..WrittenBlock::new(text, needed_len, BlockZone::Plain) }
    }

    /// Puts the block on one line, for places that end at a line break.
    pub(super) fn into_one_line(mut self) -> WrittenBlock {
        self.text = self.text.replace('\n', " ");
        self
    }
}

/// Malformed values whose meaning a reader can only guess. `@` is replaced by a marker word.
const GUESSED_VALUES: &[&str] = &[
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

/// Returns a value whose meaning a reader can only guess.
fn random_guessed_value(words: &mut WordSource) -> String {
    let value = words.pick(GUESSED_VALUES);
    if value.contains('@') { value.replace('@', &words.word()) } else { value.to_owned() }
}

/// Picks one of the faults that this kind of block can have; most blocks get none.
fn random_fault(words: &mut WordSource, possible_faults: &[BlockZone]) -> BlockZone {
    if words.draw_one_in(3) { *words.random().pick(possible_faults) } else { BlockZone::Plain }
}

/// Makes a block of Filament.
pub(super) fn filament(words: &mut WordSource) -> WrittenBlock {
    match words.below(8) {
        0 | 1 => operations_block(words),
        2 => command_block(words),
        3 | 4 => {
            let call = random_call_fields(words);
            let (name, args) = (&call.name, &call.args);
            let text = format!("<tool_call name=\"{name}\">\n{args}\n</tool_call>");
            let needed_len = text.len() - "\n</tool_call>".len();
            WrittenBlock::new(text, needed_len, call.fault)
        }
        5 => {
            let (mood, place) = (words.text_line(), words.word());
            let text = format!("<status_bar>\n<mood>{mood}</mood>\n<where>{place}</where>\n</status_bar>");
            WrittenBlock::for_display(text)
        }
        6 => {
            let prompt = words.text_line();
            let options: String = (0..1 + words.below(3))
                .map(|number| format!("<option id=\"o{number}\">{}</option>\n", words.text_line()))
                .collect();
            let text =
                format!("<choice>\n<prompt>{prompt}</prompt>\n<options>\n{options}</options>\n</choice>");
            WrittenBlock::for_display(text)
        }
        _ => {
            let line = words.text_line();
            let mut json = LooseJsonWriter::new(words);
            let fields = [("title", json.write_string(&line)), ("more", json.write_random(1))];
            let props = json.write_object(&fields);
            let text = format!("<ui_component view=\"panel.note\">\n{props}\n</ui_component>");
            WrittenBlock::for_display(text)
        }
    }
}

/// Makes a block of up to three operations. An operation with a guessed value is alone, because others would
/// still run (R-81).
fn operations_block(words: &mut WordSource) -> WrittenBlock {
    let fault = random_fault(words, &[BlockZone::Guessed]);
    let name = words.pick(&["variable_update", "state_update", "UpdateVariable"]);
    let analysis = if words.draw_one_in(2) {
        format!("<analysis>{}</analysis>\n", words.text_line())
    } else {
        String::new()
    };
    let mut json = LooseJsonWriter::new(words);
    let count = if fault == BlockZone::Plain { 1 + json.words().below(3) } else { 1 };
    let mut operations = Vec::new();
    for _ in 0..count {
        let (path, line) = (json.words().word(), json.words().text_line());
        let value = match fault {
            BlockZone::Guessed => random_guessed_value(json.words()),
            _ if json.words().draw_one_in(3) => json.write_random(1),
            _ => json.write_string(&line),
        };
        let op = json.words().pick(&["SET", "PUSH"]);
        operations.push(json.write_list(&[format!("\"{op}\""), format!("\"{path}\""), value]));
    }
    let list = json.write_list(&operations);
    let text = format!("<{name}>\n{analysis}{list}\n</{name}>");
    let needed_len = text.len() - format!("\n</{name}>").len();
    WrittenBlock::new(text, needed_len, fault)
}

/// Makes a block with one command, which may act before its comment and the closing tag have arrived.
fn command_block(words: &mut WordSource) -> WrittenBlock {
    let (path, value, comment) = (words.word(), words.word(), words.text_line());
    let text = format!("<UpdateVariable>\n_.set('{path}.a', '{value}');//{comment}\n</UpdateVariable>");
    let needed_len = text.find("//").unwrap_or(text.len());
    WrittenBlock::new(text, needed_len, BlockZone::Plain)
}

/// Parts of a call.
struct CallFields {
    /// Name of the tool: `note`, or `wipe`, which is not registered.
    name: &'static str,
    /// Arguments, as JSON text.
    args: String,
    fault: BlockZone,
}

/// Makes the name and arguments of a call, perhaps with a fault.
fn random_call_fields(words: &mut WordSource) -> CallFields {
    let fault = random_fault(words, &[BlockZone::Guessed, BlockZone::Doubled, BlockZone::Unregistered]);
    let name = if fault == BlockZone::Unregistered { "wipe" } else { "note" };
    let (prose, line) = (words.prose(), words.text_line());
    let mut json = LooseJsonWriter::new(words);
    let text = json.write_string(&prose);
    let mut fields = vec![("text", text)];
    match fault {
        BlockZone::Guessed => fields.push(("more", random_guessed_value(json.words()))),
        BlockZone::Doubled => fields.push(("text", json.write_string(&line))),
        _ => fields.push(("more", json.write_random(1))),
    }
    if json.words().draw_one_in(2) {
        fields.reverse();
    }
    CallFields { name, args: json.write_object(&fields), fault }
}

/// Written forms of calls; each is used by a family of models.
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

/// Makes a call in the form of a model family. If `is_in_code_span` is true, the form has no
/// backticks.
pub(super) fn toolcall(words: &mut WordSource, is_in_code_span: bool) -> WrittenBlock {
    let form = match words.pick(FORMS) {
        "deepseek" if is_in_code_span => "hermes",
        form => form,
    };
    let written_block = match form {
        "qwen3_coder" | "function" | "glm" | "python" => tagged_call(words, form),
        "dsml" => element_calls(words, &DSML),
        "minimax" => element_calls(words, &MINIMAX),
        _ => json_call(words, form),
    };
    WrittenBlock { form, ..written_block }
}

/// Makes a call whose arguments are a JSON object.
fn json_call(words: &mut WordSource, form: &str) -> WrittenBlock {
    let CallFields { name, args, mut fault } = random_call_fields(words);
    let mut call = format!("{{\"name\": \"{name}\", \"arguments\": {args}}}");
    if fault == BlockZone::Plain && matches!(form, "hermes" | "mistral_list") && words.draw_one_in(8) {
        // Two names, one of which might be the right one (R-95).
        call = format!("{{\"name\": \"other\", \"name\": \"{name}\", \"arguments\": {args}}}");
        fault = BlockZone::Doubled;
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
    let needed_len = text.rfind(&args).map_or(text.len(), |at| at + args.len());
    WrittenBlock::new(text, needed_len, fault)
}

/// Makes a call whose arguments are between tags, or in Python code.
fn tagged_call(words: &mut WordSource, form: &str) -> WrittenBlock {
    let fault = random_fault(words, &[BlockZone::Doubled, BlockZone::Unregistered]);
    let name = if fault == BlockZone::Unregistered { "wipe" } else { "note" };
    let (line, second_argument) = (words.text_line(), words.text_line());
    let is_doubled = fault == BlockZone::Doubled;
    let text = match form {
        "qwen3_coder" | "function" => {
            let format_argument = |line: &str| format!("<parameter=text>\n{line}\n</parameter>\n");
            let second_argument = if is_doubled { format_argument(&second_argument) } else { String::new() };
            let function =
                format!("<function={name}>\n{}{second_argument}</function>", format_argument(&line));
            if form == "function" { function } else { format!("<tool_call>\n{function}\n</tool_call>") }
        }
        "glm" => {
            let format_argument =
                |line: &str| format!("<arg_key>text</arg_key>\n<arg_value>{line}</arg_value>\n");
            let second_argument = if is_doubled { format_argument(&second_argument) } else { String::new() };
            format!("<tool_call>{name}\n{}{second_argument}</tool_call>", format_argument(&line))
        }
        _ => {
            let without_quotes = |line: &str| line.replace(['"', '\\'], "");
            let second_argument = if is_doubled {
                format!("text=\"{}\", ", without_quotes(&second_argument))
            } else {
                String::new()
            };
            format!(
                "<|python_start|>[{name}(text=\"{}\", {second_argument}n=1)]<|python_end|>",
                without_quotes(&line)
            )
        }
    };
    // The call may act once its last argument is complete.
    let ends = ["</parameter>\n</function>", "</arg_value>\n</tool_call>", ")]<|python_end|>"];
    let needed_len = ends.iter().find_map(|end| text.rfind(end)).unwrap_or(text.len());
    WrittenBlock::new(text, needed_len, fault)
}

/// Tags of calls that are written as XML elements.
struct ElementTags {
    /// Opening tag around all calls.
    opening_tag: &'static str,
    /// Closing tag around all calls.
    closing_tag: &'static str,
    /// Prefix of the tag names `invoke` and `parameter`.
    tag_prefix: &'static str,
    /// True if the tag of each argument declares whether its value is text or JSON.
    is_typed: bool,
}

const DSML: ElementTags = ElementTags {
    opening_tag: "<｜DSML｜function_calls>",
    closing_tag: "</｜DSML｜function_calls>",
    tag_prefix: "｜DSML｜",
    is_typed: true,
};

const MINIMAX: ElementTags = ElementTags {
    opening_tag: "<minimax:tool_call>",
    closing_tag: "</minimax:tool_call>",
    tag_prefix: "",
    is_typed: false,
};

impl ElementTags {
    fn format_argument(&self, name: &str, value: &str, is_string: bool) -> String {
        let tag_prefix = self.tag_prefix;
        let type_attribute = if self.is_typed { format!(" string=\"{is_string}\"") } else { String::new() };
        format!("<{tag_prefix}parameter name=\"{name}\"{type_attribute}>{value}</{tag_prefix}parameter>\n")
    }
}

/// Makes one or two calls that are written as XML elements. A faulty call is alone, because another would
/// still run.
fn element_calls(words: &mut WordSource, tags: &ElementTags) -> WrittenBlock {
    let ElementTags { opening_tag, closing_tag, tag_prefix, is_typed } = tags;
    let possible_faults: &[BlockZone] = match is_typed {
        true => &[BlockZone::Guessed, BlockZone::Doubled, BlockZone::Unregistered],
        false => &[BlockZone::Doubled, BlockZone::Unregistered],
    };
    let fault = random_fault(words, possible_faults);
    let name = if fault == BlockZone::Unregistered { "wipe" } else { "note" };
    let count = if fault == BlockZone::Plain && words.draw_one_in(3) { 2 } else { 1 };
    let mut calls = String::new();
    for _ in 0..count {
        let text = words.prose();
        let mut arguments = vec![tags.format_argument("text", &text, true)];
        match fault {
            BlockZone::Guessed => {
                arguments.push(tags.format_argument("more", &random_guessed_value(words), false))
            }
            BlockZone::Doubled => arguments.push(tags.format_argument("text", &words.text_line(), true)),
            _ if words.draw_one_in(2) => {
                let json_text = LooseJsonWriter::new(words).write_random(1);
                arguments.push(tags.format_argument("more", &json_text, false));
            }
            _ => {}
        }
        if words.draw_one_in(2) {
            arguments.reverse();
        }
        calls +=
            &format!("<{tag_prefix}invoke name=\"{name}\">\n{}</{tag_prefix}invoke>\n", arguments.concat());
    }
    let text = format!("{opening_tag}\n{calls}{closing_tag}");
    let needed_len = text.rfind(&format!("</{tag_prefix}parameter>")).unwrap_or(text.len());
    WrittenBlock::new(text, needed_len, fault)
}

/// Makes a plan that calls a tool. It may have a fault of a call, or else a second tool name, a second mode
/// or a wrapper key that does not denote a plan.
pub(super) fn plan(words: &mut WordSource) -> WrittenBlock {
    let CallFields { name, args, mut fault } = random_call_fields(words);
    let mut call = vec![("name", format!("\"{name}\"")), ("args", args)];
    let mut mode = vec![("response_mode", "\"TOOL_EXECUTION\"".to_owned())];
    let mut is_wrapped = false;
    if fault == BlockZone::Plain && words.draw_one_in(4) {
        fault = BlockZone::Doubled;
        match words.below(3) {
            0 => call.insert(0, ("name", "\"other\"".to_owned())),
            1 => mode.insert(0, ("response_mode", "\"KNOWLEDGE_QA\"".to_owned())),
            _ => (fault, is_wrapped) = (BlockZone::Wrapped, true),
        }
    }
    let thought = words.text_line();
    let mut json = LooseJsonWriter::new(words);
    let mut fields = vec![("thought", json.write_string(&thought))];
    fields.append(&mut mode);
    fields.push(("direct_response", "null".to_owned()));
    let call = json.write_object(&call);
    fields.push(("tool_calls", json.write_list(&[call])));
    let mut text = json.write_object(&fields);
    if is_wrapped {
        text = json.write_object(&[("wrong_output", text)]);
    }
    let needed_len = text.len();
    WrittenBlock::new(text, needed_len, fault)
}

/// Makes a valid answer that ends a round, with its fields in any order.
pub(super) fn answer(words: &mut WordSource) -> WrittenBlock {
    let marker_word = words.word();
    let word_number = find_words(marker_word.as_bytes()).next().map_or(0, |(_, number)| number);
    let (line, reason, message) = (words.text_line(), words.text_line(), words.text_line());
    let mut json = LooseJsonWriter::new(words);
    let assessment = [
        ("understanding_level", encode_as_level(word_number)),
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
    let first_field = json.words().below(fields.len());
    fields.rotate_left(first_field);
    let text = json.write_object(&fields);
    let needed_len = text.len();
    WrittenBlock::new(text, needed_len, BlockZone::Plain)
}
