//! Grammar of replies, from the structure that the instructions describe.

use serde_json::{Value, json};

use super::options;
use super::prompt::{order_elements, prompt_structure};
use super::tags::{ElementKind, TagTable};
use crate::error::Result;
use crate::grammar::{
    CharClass, FreeText, Grammar, GrammarBuilder, GrammarLimits, JsonSpace, JsonStyle, Node, Prose, gap,
    sequence_of,
};
use crate::lex::entity::encode;
use crate::options::Options;
use crate::state::{OPS, Op};
use crate::structure::{ElementBody, ExpectedElement};

/// Maximum number of optional elements of one name.
const MAX_REPETITIONS: u32 = 4;

/// JSON in a block: no tag can be read in it.
const STYLE: JsonStyle = JsonStyle { space: JsonSpace::Pretty, escapes_tags: true };

/// Builds the grammar.
pub(super) fn grammar(options: &Options, limits: &GrammarLimits) -> Result<Grammar> {
    let mut builder = GrammarBuilder::default();
    let expected = prompt_structure(options);
    let mut dialect_options = options::filament_options(options);
    dialect_options.structure = Some(expected.clone());
    let tags = TagTable::new(&dialect_options);
    builder.restrict("the elements come in the order of the instructions, calls at the end");
    let repetitions = if limits.text_chars.is_some() { 1 } else { MAX_REPETITIONS };
    builder.restrict(&format!("number of times that an optional element occurs: at most {repetitions}"));
    builder.restrict("no `<` in a text but before a blank and a digit, and in code but before a blank or `=`; it is written `&lt;`");
    builder.restrict("no `<` in the JSON of a block; it is written `\\u003c`");
    builder.leave(&["example_echo", "limit_exceeded"], "a grammar neither compares nor measures texts");
    let mut parts = vec![gap()];
    let order = order_elements(&expected);
    let (calls, others): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|&index| tags.kind(index) == ElementKind::Call);
    for index in others.into_iter().chain(calls) {
        let element = &expected.elements[index];
        let block =
            ElementGrammar { element, kind: tags.kind(index), options, limits }.build(&mut builder)?;
        if block.is_never() && !element.is_mandatory {
            continue;
        }
        let block = Node::sequence([block, gap()]);
        parts.push(match (element.is_mandatory, element.is_repeatable) {
            (true, _) => block,
            (false, _) if is_single(tags.kind(index)) => block.optional(),
            (false, true) => block.repeat(0, Some(repetitions)),
            (false, false) => block.optional(),
        });
    }
    builder.leave_arguments();
    builder.finish(super::ENTRY.name, Node::sequence(parts))
}

/// Returns whether an element is read as one with another one of its kind.
fn is_single(kind: ElementKind) -> bool {
    matches!(kind, ElementKind::Thought | ElementKind::Content)
}

/// Sequences that may begin a tag in a tolerant reading, outside of code.
fn forbidden_in_text() -> Vec<Vec<CharClass>> {
    let digits = CharClass::new([('0', '9')]);
    vec![
        vec![CharClass::of("＜")],
        vec![CharClass::of("<"), CharClass::of(" ").negate()],
        vec![CharClass::of("<"), CharClass::of(" "), digits.negate()],
    ]
}

/// Sequences that may begin a tag in code, whose `<` cannot be written in another way.
fn forbidden_in_code() -> Vec<Vec<CharClass>> {
    let harmless = CharClass::of(" =");
    vec![
        vec![CharClass::of("<＜"), harmless.negate()],
        vec![CharClass::of("<＜"), CharClass::of(" "), word_start()],
    ]
}

fn word_start() -> CharClass {
    CharClass::new([('a', 'z'), ('A', 'Z'), ('\u{80}', char::MAX)]).union(&CharClass::of("/_!?|／"))
}

/// Characters of names.
fn name_chars() -> CharClass {
    CharClass::new([('a', 'z'), ('A', 'Z'), ('0', '9'), ('\u{4E00}', '\u{9FFF}')]).union(&CharClass::of("_"))
}

/// A name, which begins with a letter.
fn word() -> Node {
    let letters = CharClass::new([('a', 'z'), ('A', 'Z'), ('\u{4E00}', '\u{9FFF}')]);
    Node::sequence([Node::Class(letters), Node::Class(name_chars()).repeat(0, Some(23))])
}

/// Text up to a closing tag, which has a character that is not white space.
fn text(end: impl Into<String>) -> FreeText {
    FreeText::new(end).without(forbidden_in_text()).without([sequence_of("`"), sequence_of("~~~")]).filled()
}

/// Value of an attribute in double quotes, of at most `chars` characters.
fn attribute_text(chars: u32) -> Node {
    let excluded =
        CharClass::of("\"'<>&＜＞").union(&CharClass::new([('\0', '\u{1F}'), ('\u{7F}', '\u{9F}')]));
    Node::token([
        Node::Class(excluded.union(&CharClass::blank()).negate()),
        Node::Class(excluded.negate()).repeat(0, Some(chars.saturating_sub(1))),
    ])
}

/// One element, with the sources of its grammar.
struct ElementGrammar<'a> {
    element: &'a ExpectedElement,
    kind: ElementKind,
    options: &'a Options,
    limits: &'a GrammarLimits,
}

impl ElementGrammar<'_> {
    /// Builds the element.
    fn build(&self, builder: &mut GrammarBuilder) -> Result<Node> {
        let name = &*self.element.name;
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        let text_element = || Node::token([Node::literal(open.clone()), Node::Text(text(close.clone()))]);
        let aside = |end: &str| text(end).at_most(self.limits.aside_chars());
        let block = |body: Node| {
            Node::sequence([Node::literal(open.clone()), gap(), body, gap(), Node::literal(close.clone())])
        };
        Ok(match self.kind {
            ElementKind::Thought => Prose {
                open: &open,
                close: &close,
                after: Node::Sequence(Vec::new()),
                forbidden: &forbidden_in_code(),
                forbidden_outside_code: &forbidden_in_text(),
                has_comments: false,
                may_stop: false,
            }
            .build(builder),
            ElementKind::Content => {
                builder.restrict("the content begins with text, has no HTML, and its code is closed");
                Prose {
                    open: &open,
                    close: &close,
                    after: Node::Sequence(Vec::new()),
                    forbidden: &forbidden_in_code(),
                    forbidden_outside_code: &forbidden_in_text(),
                    has_comments: true,
                    may_stop: false,
                }
                .build(builder)
            }
            ElementKind::Update => {
                let analysis = Node::token([Node::literal("<analysis>"), Node::Text(aside("</analysis>"))]);
                let operations = operations(builder)?;
                block(Node::sequence([Node::sequence([analysis, gap()]).optional(), operations]))
            }
            ElementKind::Call => return self.calls(builder),
            ElementKind::Status => {
                let item = Node::sequence([
                    Node::token([Node::literal("<"), word(), Node::literal(">"), Node::Text(aside("</"))]),
                    Node::token([word(), Node::literal(">")]),
                ]);
                let count = if self.limits.text_chars.is_some() { 7 } else { 31 };
                let more = Node::sequence([gap(), item.clone()]).repeat(0, Some(count));
                block(Node::sequence([item, more]))
            }
            ElementKind::Details => {
                let summary = Node::token([Node::literal("<summary>"), Node::Text(aside("</summary>"))]);
                Node::sequence([Node::literal(open), gap(), summary, Node::Text(text(close))])
            }
            ElementKind::Choice => {
                let prompt = Node::token([Node::literal("<prompt>"), Node::Text(aside("</prompt>"))]);
                let option = |id: Node| {
                    let text = Node::Text(aside("</option>"));
                    Node::token([Node::literal("<option id=\""), id, Node::literal("\">"), text])
                };
                let options = if self.limits.text_chars.is_some() {
                    // A model that repeats itself repeats the id as well.
                    builder.restrict("a choice has at most four options, with the ids a, b, c, d");
                    let last = option(Node::literal("d"));
                    ["c", "b", "a"].into_iter().fold(last, |rest, id| {
                        let more = Node::sequence([gap(), rest]).optional();
                        Node::sequence([option(Node::literal(id)), more])
                    })
                } else {
                    builder.leave(&["choice_id_duplicate"], "a grammar cannot compare ids");
                    let option = option(word());
                    Node::sequence([option.clone(), Node::sequence([gap(), option]).repeat(0, Some(11))])
                };
                let (start, end) = (Node::literal("<options>"), Node::literal("</options>"));
                block(Node::sequence([prompt, gap(), start, gap(), options, gap(), end]))
            }
            ElementKind::Component => {
                let views = options::filament_options(self.options).views;
                let view = match views {
                    Some(views) => Node::choice(
                        views.iter().map(|view| Node::literal(encode(view).replace('"', "&quot;"))),
                    ),
                    None => Node::token([
                        name_ascii(),
                        Node::sequence([Node::literal("."), name_ascii()]).repeat(1, Some(4)),
                    ]),
                };
                let props = builder.json(&json!({ "type": "object" }), STYLE)?;
                let head = [Node::literal(format!("<{name} view=\"")), view, Node::literal("\">"), gap()];
                Node::sequence(head.into_iter().chain([props, gap(), Node::literal(close)]))
            }
            ElementKind::Media => media(name, self.limits),
            ElementKind::Custom => match self.element.body {
                ElementBody::Text | ElementBody::Markup => text_element(),
                ElementBody::Json => block(builder.json(&json!({ "type": "object" }), STYLE)?),
                ElementBody::Empty => Node::literal(format!("{open}{close}")),
            },
        })
    }

    /// Calls of the tools; none without tools.
    fn calls(&self, builder: &mut GrammarBuilder) -> Result<Node> {
        let name = &*self.element.name;
        let tools = self.options.tools.iter().flat_map(|tools| tools.iter());
        let mut parts = Vec::new();
        for tool in tools.filter(|tool| tool.allows_caller(self.options.caller.as_deref())) {
            let args = builder.json(tool.schema(), STYLE)?;
            let open = format!("<{name} name=\"{}\">", encode(&tool.name).replace('"', "&quot;"));
            let close = Node::literal(format!("</{name}>"));
            let call = Node::sequence([Node::literal(open), gap(), args, gap(), close]);
            parts.push(builder.rule(&format!("call-{}", tool.name), call));
        }
        Ok(Node::choice(parts))
    }
}

/// A name of ASCII letters, digits and `_`.
fn name_ascii() -> Node {
    let letters = CharClass::new([('a', 'z'), ('A', 'Z')]);
    let others = letters.union(&CharClass::new([('0', '9')])).union(&CharClass::of("_"));
    Node::sequence([Node::Class(letters), Node::Class(others).repeat(0, Some(31))])
}

/// An image, audio or video: a path below the application's folder, or an `https` address.
fn media(name: &str, limits: &GrammarLimits) -> Node {
    let (dots, segments) = if limits.text_chars.is_some() { (1, 2) } else { (3, 8) };
    let word = || Node::Class(name_chars().union(&CharClass::of("-"))).repeat(1, Some(40));
    let segment =
        || Node::sequence([word(), Node::sequence([Node::literal("."), word()]).repeat(0, Some(dots))]);
    let path = Node::sequence([
        Node::literal("https://").optional(),
        segment(),
        Node::sequence([Node::literal("/"), segment()]).repeat(0, Some(segments)),
    ]);
    let kinds = Node::choice(["image", "audio", "video"].map(Node::literal));
    Node::sequence([
        Node::literal(format!("<{name} type=\"")),
        kinds,
        Node::literal("\" src=\""),
        Node::token([path]),
        Node::literal("\" alt=\""),
        attribute_text(limits.aside_chars().map_or(201, |chars| chars.min(201))).optional(),
        Node::literal("\" />"),
    ])
}

/// The operations of an update: a list of lists of an operation, a path and a value.
fn operations(builder: &mut GrammarBuilder) -> Result<Node> {
    builder.restrict("a path is names with dots between them");
    let segment = || Node::Class(name_chars()).repeat(1, Some(40));
    let path = Node::token([
        Node::literal("\""),
        word(),
        Node::sequence([Node::literal("."), segment()]).repeat(0, Some(12)),
        Node::literal("\""),
    ]);
    let comma = || Node::sequence([Node::literal(","), Node::token([Node::literal(" ")]).optional()]);
    let number = builder.json(&json!({ "type": "number" }), STYLE)?;
    let value = builder.json(&Value::Bool(true), STYLE)?;
    let names =
        |is_wanted: &dyn Fn(Op) -> bool| -> Vec<Op> { OPS.into_iter().filter(|op| is_wanted(*op)).collect() };
    let groups = [
        (names(&|op| op.is_arithmetic()), Some((number, json!({ "type": "number" })))),
        (names(&|op| op.takes_value() && !op.is_arithmetic()), Some((value, Value::Bool(true)))),
        (names(&|op| !op.takes_value()), None),
    ];
    let mut parts = Vec::new();
    let mut schemas = Vec::new();
    for (ops, value) in groups {
        let names = Node::choice(ops.iter().map(|op| Node::literal(format!("\"{}\"", op.name()))));
        let mut operation = vec![Node::literal("["), names, comma(), path.clone()];
        let words: Vec<&str> = ops.iter().map(|op| op.name()).collect();
        let mut items = vec![json!({ "enum": words }), json!({ "type": "string", "minLength": 1 })];
        if let Some((value, schema)) = value {
            operation.extend([comma(), value]);
            items.push(schema);
        }
        operation.push(Node::literal("]"));
        parts.push(Node::sequence(operation));
        schemas
            .push(json!({ "type": "array", "minItems": items.len(), "prefixItems": items, "items": false }));
    }
    // llama.cpp expands what is repeated: a reference stays small.
    let operation = builder.rule("operation", Node::choice(parts));
    let more = Node::sequence([Node::literal(","), gap(), operation.clone()]).repeat(0, Some(63));
    let node = Node::sequence([Node::literal("["), gap(), operation, more, gap(), Node::literal("]")]);
    let schema = json!({ "type": "array", "minItems": 1, "items": { "anyOf": schemas } });
    Ok(Node::Json { schema, node: Box::new(node) })
}
