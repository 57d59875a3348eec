//! Grammar of replies: free text, and calls of the tools in the first written form of a format.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::CallOptions;
use super::formats::{CallBody, CallForm, CallFormat, FORMS, FormStep};
use crate::error::{Error, Result};
use crate::grammar::{
    CharClass, FreeText, Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, Prose, draft,
    gap, move_references, sequence_of,
};
use crate::options::Options;
use crate::tool::RegisteredTool;

/// Maximum number of calls of a reply.
const MAX_CALLS: u32 = 16;
/// The same if texts are bounded, since a model that repeats itself calls until the end.
const MAX_BOUNDED_CALLS: u32 = 4;

const STYLE: JsonStyle = JsonStyle { space: JsonSpace::Pretty, escapes_tags: true };

/// Builds the grammar.
///
/// # Errors
/// There are no tools, or the format has no form with a mark.
pub(super) fn grammar(options: &Options, limits: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let tools = options.tools.iter().flat_map(|tools| tools.iter());
    let tools: Vec<&RegisteredTool> =
        tools.filter(|tool| tool.allows_caller(options.caller.as_deref())).collect();
    if tools.is_empty() {
        return Err(Error::invalid(
            "a grammar of calls names the tools, and there are none: set the option `tools`",
        ));
    }
    let format = options.section::<CallOptions>().format.unwrap_or(CallFormat::Hermes);
    let has_calls = |form: &&CallForm| {
        !matches!(form.body, CallBody::NoArguments | CallBody::Reasoning | CallBody::Python)
    };
    let forms = || FORMS.iter().filter(|form| form.format == format && !form.open_mark.is_empty());
    let Some(form) = forms().find(has_calls) else {
        return Err(Error::invalid(
            "this format has no form of calls with a mark: choose another `toolcall.format`",
        ));
    };
    builder.restrict("calls have the first form of their format, and follow the text");
    let max_calls = if limits.text_chars.is_some() { MAX_BOUNDED_CALLS } else { MAX_CALLS };
    builder.restrict(&format!("there are at most {max_calls} calls"));
    builder
        .restrict("outside of code, the text has no `{` before a quote or white space: JSON can be a call");
    builder.restrict(
        "the text has no `</`, `<|`, `[/`, mark of calls or reasoning, or backtick that is not closed; the fence of code \
         begins a line and names a language of letters and digits",
    );
    builder.leave(&["limit_exceeded"], "a grammar does not measure texts");
    builder.leave(
        &["tool_call_aside", "call_mark_stray"],
        "texts and values that look like code or marks can quote a call",
    );
    builder.restrict("no `<` in the JSON of a call; it is written `\\u003c`");
    let mut calls = Vec::new();
    for tool in tools {
        let call = CallGrammar { form, tool }.build(&mut builder)?;
        calls.push(builder.rule(&format!("call-{}", tool.name), call));
    }
    let mut call = builder.rule("call", Node::choice(calls));
    if form.body == CallBody::CallObjects {
        // The objects stand alone or, as Mistral writes them, in a list.
        let more = Node::sequence([Node::literal(","), gap(), call.clone()]).repeat(0, Some(max_calls - 1));
        let list = Node::sequence([Node::literal("["), gap(), call.clone(), more, gap(), Node::literal("]")]);
        let objects = if format == CallFormat::Mistral { Node::choice([call, list]) } else { call };
        let end = form.close_marks.last().map(|close| Node::sequence([gap(), Node::literal(*close)]));
        call = builder.rule("calls", Node::sequence([gap(), objects].into_iter().chain(end)));
    }
    let line_break = || Node::literal("\n");
    let more = Node::sequence([line_break().optional(), Node::literal(form.open_mark), call.clone()]);
    // Marks of calls and reasoning are no text.
    let marks: Vec<&str> = forms().map(|form| form.open_mark).collect();
    let other_marks = [
        "</",
        "<|",
        "<｜",
        "<think",
        "<Think",
        "<tool",
        "<function",
        "<invoke",
        "[TOOL",
        "[/",
        "[THINK",
        "◁",
        "```",
    ];
    let forbidden: Vec<Vec<CharClass>> =
        marks.iter().chain(&other_marks).map(|mark| sequence_of(mark)).collect();
    let more = more.repeat(0, Some(max_calls - 1));
    let after = Node::sequence([call, more, line_break().optional()]);
    let text = Prose {
        open: "",
        close: form.open_mark,
        after,
        forbidden: &before_mark(&forbidden, form.open_mark),
        forbidden_outside_code: &[vec![CharClass::of("{"), CharClass::of("\"").union(&CharClass::blank())]],
        has_comments: false,
        may_stop: true,
    };
    let text = text.build(&mut builder);
    if builder.has_open_objects() {
        builder.leave(&["tool_call_invalid"], "a call whose arguments have a key twice does not run");
    }
    builder.leave_arguments();
    let root = Node::sequence([draft("\n").optional(), text]);
    builder.finish(super::ENTRY.name, root)
}

/// Sequences without those that `mark` begins with.
fn before_mark(sequences: &[Vec<CharClass>], mark: &str) -> Vec<Vec<CharClass>> {
    let begins = |sequence: &[CharClass]| {
        let mut chars = mark.chars();
        sequence.iter().all(|class| chars.next().is_some_and(|c| class.contains(c)))
    };
    sequences.iter().filter(|sequence| !begins(sequence)).cloned().collect()
}

/// One call, after its opening mark; of objects, without what is around them.
struct CallGrammar<'a> {
    form: &'a CallForm,
    tool: &'a RegisteredTool,
}

impl CallGrammar<'_> {
    fn build(&self, builder: &mut GrammarBuilder) -> Result<Node> {
        let mut parts = self.head();
        let close = self.form.close_marks.last().copied().unwrap_or_default();
        match self.form.body {
            CallBody::CallObjects => {
                let schema = json!({
                    "type": "object",
                    "properties": {
                        "name": { "const": self.tool.name },
                        "arguments": { "$ref": "#/$defs/arguments" },
                    },
                    "required": ["name", "arguments"],
                    "additionalProperties": false,
                    "$defs": { "arguments": move_references(self.tool.schema(), "#/$defs/arguments") },
                });
                return builder.json(&schema, STYLE);
            }
            CallBody::ArgsObject => parts.push(builder.json(self.tool.schema(), STYLE)?),
            CallBody::Parameters => {
                parts.push(Node::literal("\n"));
                parts.push(self.values(builder, "<parameter=", ">\n", "\n</parameter>\n")?);
                parts.push(Node::literal("</function>"));
            }
            CallBody::Pairs => {
                parts.push(Node::literal("\n"));
                parts.push(self.values(builder, "<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n")?);
            }
            CallBody::Elements(marks) => {
                parts.push(Node::literal("\n"));
                let after_key = if marks.is_typed { None } else { Some("\">") };
                let close_value = format!("{}\n", marks.parameter_marks.close);
                parts.push(match after_key {
                    Some(after_key) => {
                        self.values(builder, marks.parameter_marks.open, after_key, &close_value)?
                    }
                    None => self.typed_values(builder, marks.parameter_marks.open, &close_value)?,
                });
                parts.push(Node::literal(marks.close));
            }
            CallBody::Python | CallBody::NoArguments | CallBody::Reasoning => return Ok(Node::never()),
        }
        if !close.is_empty() {
            let is_line = self.form.body == CallBody::Parameters;
            parts.push(if is_line { Node::literal("\n") } else { gap() });
            parts.push(Node::literal(close));
        }
        Ok(Node::sequence(parts))
    }

    /// Parts from the opening mark to the arguments.
    fn head(&self) -> Vec<Node> {
        let has_json = matches!(self.form.body, CallBody::CallObjects | CallBody::ArgsObject);
        let mut parts = Vec::new();
        for step in self.form.head {
            match step {
                FormStep::Text(text) => parts.push(Node::literal(*text)),
                FormStep::OneOf(texts) => {
                    parts.push(Node::literal(texts.first().copied().unwrap_or_default()))
                }
                FormStep::Name => parts.push(Node::literal(&self.tool.name)),
                FormStep::Space => parts.push(gap()),
                FormStep::Optional(_) | FormStep::Id => {}
                // Later steps belong to the arguments.
                FormStep::ArgumentsStart | FormStep::NextIs(_) if has_json => break,
                FormStep::ArgumentsStart | FormStep::NextIs(_) => {}
            }
        }
        // White space twice in a row would be one token.
        parts.dedup();
        if parts.last() == Some(&gap()) && !has_json {
            parts.pop();
        }
        parts
    }

    /// Arguments as values between marks.
    fn values(&self, builder: &mut GrammarBuilder, open: &str, after_key: &str, close: &str) -> Result<Node> {
        self.parameters(builder, &|_| (open.to_owned(), after_key.to_owned(), close.to_owned()))
    }

    /// Arguments as values between marks that say whether a value is a string.
    fn typed_values(&self, builder: &mut GrammarBuilder, open: &str, close: &str) -> Result<Node> {
        self.parameters(builder, &|is_text| {
            (open.to_owned(), format!("\" string=\"{is_text}\">"), close.to_owned())
        })
    }

    fn parameters(
        &self,
        builder: &mut GrammarBuilder,
        marks: &dyn Fn(bool) -> (String, String, String),
    ) -> Result<Node> {
        builder.restrict("a call has only the parameters that its schema lists, in its order");
        let own_schema = self.tool.schema();
        let schema = builder.flatten(own_schema)?;
        if schema.as_bool() == Some(false) {
            return Ok(Node::never());
        }
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let names = schema.get("required").and_then(Value::as_array);
        let required: BTreeSet<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
        // Parameters are read from the schema itself.
        let is_stated = required.iter().all(|name| properties.contains_key(*name));
        let stated = ["type", "properties", "additionalProperties", "required"];
        builder.leave_keywords(&schema, &stated[..if is_stated { 4 } else { 3 }], "#");
        let mut parts = Vec::new();
        for (name, property) in properties {
            let listed = listed_texts(property);
            let is_text = is_string(property) && property.get("enum").is_none();
            let (open, after_key, close) = marks(is_text || listed.is_some());
            let start = Node::literal(format!("{open}{name}{after_key}"));
            let value = if let Some(texts) = listed {
                builder.leave_keywords(property, &["type", "enum", "const"], &format!("#/properties/{name}"));
                let is_plain =
                    |text: &&str| !text.is_empty() && text.trim() == *text && !text.contains(['<', '\n']);
                if !texts.iter().all(is_plain) {
                    builder.restrict(
                        "a text that a schema lists is no value of a parameter if it has a `<` or a line break, or \
                         white space at its ends",
                    );
                }
                builder.count(texts.len(), &format!("#/properties/{name}"))?;
                let texts = Node::choice(texts.into_iter().filter(is_plain).map(Node::literal));
                Node::sequence([start, texts, Node::literal(close)])
            } else if is_text {
                builder.leave_keywords(property, &["type"], &format!("#/properties/{name}"));
                Node::token([
                    start,
                    Node::Text(FreeText::new(&*close).without(self.value_marks(&open, &close))),
                ])
            } else {
                // References of the property lead into the schema of the tool.
                let wrapped = wrap(property, own_schema);
                builder.count_schema(&wrapped, &format!("#/properties/{name}"))?;
                Node::sequence([start, builder.json(&wrapped, STYLE)?, Node::literal(close)])
            };
            parts.push(if required.contains(name.as_str()) { value } else { value.optional() });
        }
        Ok(Node::sequence(parts))
    }

    /// Marks of the form, which a value in it does not contain.
    fn value_marks(&self, open: &str, close: &str) -> Vec<Vec<CharClass>> {
        let ends = match self.form.body {
            CallBody::Elements(marks) => marks.close,
            CallBody::Parameters => "</function>",
            _ => "<arg_key>",
        };
        let form =
            [self.form.open_mark, open.trim(), ends].into_iter().chain(self.form.close_marks.iter().copied());
        let marks: BTreeSet<&str> = form.filter(|mark| !mark.is_empty()).collect();
        let marks = marks.into_iter().map(sequence_of).collect::<Vec<_>>();
        // The mark at the end may stand without the line break after or before it.
        let mut marks = before_mark(&marks, close);
        if close.trim() != close {
            marks.extend(close.starts_with('\n').then(|| sequence_of(close.trim())));
        }
        marks
    }
}

fn is_string(property: &Value) -> bool {
    property.get("type").is_some_and(|kind| *kind == json!("string") || *kind == json!(["string"]))
}

/// Texts that a property lists, if it allows no other values: they are read as they stand, without quotes.
fn listed_texts(property: &Value) -> Option<Vec<&str>> {
    let is_string = is_string(property);
    if let Some(constant) = property.get("const").and_then(Value::as_str).filter(|_| is_string) {
        return Some(vec![constant]);
    }
    let listed = property.get("enum")?.as_array()?;
    let texts: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
    (is_string || property.get("type").is_none() && texts.len() == listed.len()).then_some(texts)
}

/// Schema of a property, with the schema of its tool, which its references lead into.
fn wrap(property: &Value, schema: &Value) -> Value {
    if !has_references(property) {
        return property.clone();
    }
    let place = "#/$defs/tool";
    let (mut wrapped, tool) = (move_references(property, place), move_references(schema, place));
    if let Some(fields) = wrapped.as_object_mut() {
        // References lead to definitions from the root of the tool's schema.
        fields.insert("$defs".to_owned(), json!({ "tool": tool }));
    }
    wrapped
}

fn has_references(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.contains_key("$ref") || fields.values().any(has_references),
        Value::Array(items) => items.iter().any(has_references),
        _ => false,
    }
}
