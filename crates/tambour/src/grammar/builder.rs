//! Builder of grammars, with the parts that several dialects share.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::json::JsonStyle;
use super::json_tokens::StringBounds;
use super::{CharClass, FreeText, Grammar, GrammarNote, Node, NoteKind, sequence_of};
use crate::error::{Error, Result};

/// Maximum number of nodes of one grammar.
pub(super) const MAX_NODES: usize = 200_000;

/// Maximum number of notes on keywords; a schema may have any number of them.
const MAX_KEYWORD_NOTES: usize = 200;

/// Code of the rule that a key occurs once.
const DUPLICATE_KEY: &str = "duplicate_key";

/// Limits that other stages set and a grammar states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrammarLimits {
    /// Maximum number of search queries.
    pub queries: u32,
    /// Maximum length of a query in characters.
    pub query_chars: u32,
    /// Maximum length of a text of an answer in characters; `None` is unbounded.
    pub text_chars: Option<u32>,
}

impl GrammarLimits {
    /// Creates limits.
    #[must_use]
    pub fn new(queries: u32, query_chars: u32) -> GrammarLimits {
        GrammarLimits { queries, query_chars, text_chars: None }
    }

    /// Sets the bound on texts. There is one query then, since a model that repeats itself repeats its queries as
    /// well, and a grammar cannot compare them.
    #[must_use]
    pub fn with_text_chars(mut self, chars: Option<u32>) -> GrammarLimits {
        self.text_chars = chars;
        if chars.is_some() {
            self.queries = self.queries.min(1);
        }
        self
    }

    /// Number of phases that a grammar unrolls, so that their ids are 1, 2, 3 and so on: at most `limit`, and few if
    /// texts are bounded, since a model that repeats itself begins all of them.
    #[must_use]
    pub(crate) fn phases(&self, limit: usize) -> usize {
        limit.clamp(1, if self.text_chars.is_some() { 4 } else { 16 })
    }

    /// Bound in characters of a text that is no answer, such as the text of a phase: half of that of an answer.
    #[must_use]
    pub(crate) fn aside_chars(&self) -> Option<u32> {
        self.text_chars.map(|chars| chars.div_ceil(2))
    }
}

/// Builder of a [`Grammar`].
#[derive(Debug, Default)]
pub struct GrammarBuilder {
    pub(super) rules: Vec<(String, Node)>,
    /// Names of the rules without a number.
    names: BTreeSet<String>,
    notes: Vec<GrammarNote>,
    /// Notes so far.
    known_notes: BTreeSet<(NoteKind, String, String)>,
    /// Number of notes on keywords, those left out too.
    keyword_count: usize,
    /// True if an object may have members that its schema does not list.
    has_open_objects: bool,
    /// Rules of any JSON value by style and depth.
    pub(super) any_values: BTreeMap<(JsonStyle, u32), usize>,
    /// Rules of strings by style and bounds.
    pub(super) strings: BTreeMap<(JsonStyle, StringBounds), usize>,
    node_count: usize,
}

impl GrammarBuilder {
    /// Finishes the grammar.
    ///
    /// # Errors
    /// No reply satisfies the grammar.
    pub fn finish(mut self, title: &str, mut root: Node) -> Result<Grammar> {
        remove_never(&mut self.rules, &mut root);
        if let Some(count) = self.keyword_count.checked_sub(MAX_KEYWORD_NOTES).filter(|count| *count > 0) {
            let text = format!("{count} more keywords, which this list leaves out: the checker tests them");
            self.notes.push(GrammarNote { kind: NoteKind::UncheckedKeyword, subject: "#".to_owned(), text });
        }
        if root.is_never() {
            return Err(Error::invalid(format!(
                "no reply can satisfy the contract `{title}` under these options: look for a schema that no \
                 value satisfies"
            )));
        }
        Ok(Grammar { title: title.to_owned(), root, rules: self.rules, notes: self.notes })
    }

    /// Adds a rule, and returns the reference to it.
    pub fn rule(&mut self, name: &str, node: Node) -> Node {
        let index = self.reserve_rule(name);
        self.rules[index].1 = node;
        Node::Rule(index)
    }

    /// Adds a rule whose node is set later; until then no text satisfies it. Returns its index.
    pub(super) fn reserve_rule(&mut self, name: &str) -> usize {
        let letters =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let mut stem: String = letters.take(32).collect::<String>().trim_matches('-').to_owned();
        // Writers name rules of free texts `text-…`, and others `part-…`.
        if !stem.starts_with(|c: char| c.is_ascii_lowercase())
            || stem.starts_with("text")
            || stem.starts_with("part")
        {
            stem.insert_str(0, "rule-");
        }
        // A stem that ends in a number could be the name of a later rule.
        let is_taken = matches!(&*stem, "root" | "start") || stem.ends_with(|c: char| c.is_ascii_digit());
        let name = match is_taken || !self.names.insert(stem.clone()) {
            true => format!("{stem}-{}", self.rules.len()),
            false => stem,
        };
        self.rules.push((name, Node::never()));
        self.rules.len() - 1
    }

    /// Counts nodes.
    ///
    /// # Errors
    /// The grammar has too many.
    pub(crate) fn count(&mut self, nodes: usize, place: &str) -> Result<()> {
        self.node_count += nodes;
        if self.node_count <= MAX_NODES {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "the grammar takes more than {MAX_NODES} parts (reached at {place}): use fewer tools, or schemas with \
             fewer properties and alternatives"
        )))
    }

    /// Counts the values of a schema that is a copy of a part of another one.
    ///
    /// # Errors
    /// The grammar has too many parts.
    pub(crate) fn count_schema(&mut self, schema: &Value, place: &str) -> Result<()> {
        self.count(super::json::weight(schema), place)
    }

    /// Returns whether an object may have members that its schema does not list.
    pub(crate) fn has_open_objects(&self) -> bool {
        self.has_open_objects
    }

    /// Notes the keywords of the schema at `place` but the `stated` ones and annotations.
    pub(crate) fn leave_keywords(&mut self, schema: &Value, stated: &[&str], place: &str) {
        for key in schema.as_object().into_iter().flatten().map(|(key, _)| key) {
            if !stated.contains(&&**key) && !super::json::is_annotation(key) {
                let text = format!("`{key}`: the checker tests it");
                self.note(NoteKind::UncheckedKeyword, &format!("{place}/{key}"), &text);
            }
        }
    }

    /// Notes the rule that arguments satisfy their schema, if the grammar does not state all of the schemas.
    pub(crate) fn leave_arguments(&mut self) {
        if self.keyword_count > 0 {
            self.leave(&["tool_args_invalid"], "the grammar does not state all keywords of the schemas");
        }
    }

    /// Notes that an object may have members that its schema does not list.
    pub(super) fn leave_open_object(&mut self) {
        self.has_open_objects = true;
        self.leave(&[DUPLICATE_KEY], "members that no schema lists may have one key twice");
    }

    /// Notes that the grammar forbids what the contract allows.
    pub fn restrict(&mut self, text: &str) {
        self.note(NoteKind::Restriction, "", text);
    }

    /// Notes rules that the grammar cannot state.
    pub fn leave(&mut self, codes: &[&str], reason: &str) {
        codes.iter().for_each(|code| self.note(NoteKind::UncheckedRule, code, reason));
    }

    pub(super) fn note(&mut self, kind: NoteKind, subject: &str, text: &str) {
        if !self.known_notes.insert((kind, subject.to_owned(), text.to_owned())) {
            return;
        }
        if kind == NoteKind::UncheckedKeyword {
            self.keyword_count += 1;
            if self.keyword_count > MAX_KEYWORD_NOTES {
                return;
            }
        }
        self.notes.push(GrammarNote { kind, subject: subject.to_owned(), text: text.to_owned() });
    }
}

/// Removes the parts that no text satisfies, and those that refer to rules that no text satisfies. A model that enters
/// such a part cannot end its reply.
pub(super) fn remove_never(rules: &mut [(String, Node)], root: &mut Node) {
    let mut is_known = vec![false; rules.len()];
    let mut rest: Vec<usize> = (0..rules.len()).collect();
    loop {
        let len = rest.len();
        rest.retain(|&index| {
            is_known[index] = rules[index].1.is_satisfiable(&is_known);
            !is_known[index]
        });
        if rest.len() == len {
            break;
        }
        // Rules refer to earlier ones and to later ones.
        rest.reverse();
    }
    root.remove_never(&is_known);
    rules.iter_mut().for_each(|(_, node)| node.remove_never(&is_known));
}

/// Sequences that begin a tag, a comment or a mark: `<` before a letter, `/`, `!`, `?` or `|`, and the failure
/// marker's `<<`.
#[must_use]
pub(crate) fn tag_starts() -> Vec<Vec<CharClass>> {
    let after = CharClass::new([('a', 'z'), ('A', 'Z')]).union(&CharClass::of("/!?|<_"));
    vec![vec![CharClass::of("<＜"), after]]
}

/// Optional white space between tags, at most eight characters.
#[must_use]
pub(crate) fn gap() -> Node {
    Node::token([Node::Class(CharClass::of(" \t\r\n")).repeat(1, Some(8))]).optional()
}

/// An element of text: its opening tag, a text of at most `chars` characters, and its closing tag.
#[must_use]
pub(crate) fn text_element(name: &str, is_filled: bool, chars: Option<u32>) -> Node {
    let text =
        FreeText { is_filled, ..FreeText::new(format!("</{name}>")).without(tag_starts()).at_most(chars) };
    Node::token([Node::literal(format!("<{name}>")), Node::Text(text)])
}

/// Reasoning: `<think>`, free text without another mark of reasoning, `</think>` and `after`.
#[must_use]
pub(crate) fn draft(after: &str) -> Node {
    let marks = ["</", "<think", "<Think", "<thought", "<reason", "<|", "<<", "[/"].map(sequence_of);
    let text = FreeText::new(format!("</think>{after}")).without(marks);
    Node::token([Node::literal("<think>"), Node::Text(text)])
}

/// Reasoning before a reply, if there is any, and white space.
#[must_use]
pub(crate) fn leading_draft(after: &str) -> Node {
    Node::sequence([draft(after), gap()]).optional()
}

/// A list of search queries on one line. Queries have none of the characters in `excluded`.
pub(crate) fn search_queries(
    builder: &mut GrammarBuilder,
    limits: &GrammarLimits,
    excluded: &CharClass,
) -> Node {
    builder.restrict(&format!(
        "the list of queries has at most {} of at most {} characters each, which begin with a character that is not \
         white space and have no escapes but of quotes",
        limits.queries, limits.query_chars
    ));
    let excluded = CharClass::of("\"\\")
        .union(&CharClass::new([('\0', '\u{1F}'), ('\u{7F}', '\u{9F}')]))
        .union(excluded);
    let quote = || Node::sequence([Node::literal("\\\"")]);
    let first = Node::choice([Node::Class(excluded.union(&CharClass::blank()).negate()), quote()]);
    let next = Node::choice([Node::Class(excluded.negate()), quote()]);
    let length = limits.query_chars.saturating_sub(1);
    let query = Node::token([Node::literal("\""), first, next.repeat(0, Some(length)), Node::literal("\"")]);
    let comma = || Node::sequence([Node::literal(","), Node::token([Node::literal(" ")]).optional()]);
    let queries = match limits.queries {
        0 | 1 => query,
        limit => {
            let more = Node::sequence([comma(), query.clone()]).repeat(0, Some(limit - 1));
            Node::sequence([query, more])
        }
    };
    Node::sequence([Node::literal("["), queries.optional(), Node::literal("]")])
}

/// Changes the references of a schema that becomes part of another one, at `place`, such as `#/$defs/name`.
#[must_use]
pub(crate) fn move_references(schema: &Value, place: &str) -> Value {
    match schema {
        Value::Object(fields) => {
            let moved = fields.iter().map(|(key, value)| {
                let value = match (key.as_str(), value.as_str()) {
                    ("$ref", Some(reference)) if reference.starts_with('#') => {
                        Value::from(format!("{place}{}", &reference[1..]))
                    }
                    _ => move_references(value, place),
                };
                (key.clone(), value)
            });
            Value::Object(moved.collect())
        }
        Value::Array(items) => items.iter().map(|item| move_references(item, place)).collect(),
        value => value.clone(),
    }
}

/// Notes the rules on queries that a grammar cannot state.
pub(crate) fn leave_query_rules(builder: &mut GrammarBuilder) {
    builder.leave(
        &["serp_queries_duplicate", "serp_queries_case", "serp_query_sensitive"],
        "a grammar cannot compare queries or find personal data",
    );
    builder.leave(&["serp_queries_empty", "serp_queries_many"], "the number of queries is advice");
}

/// Text in Markdown, with closed code spans and code fences: a delimiter in code that is not closed would be
/// code.
pub(crate) struct Prose<'a> {
    /// Text before it.
    pub(crate) open: &'a str,
    /// Delimiter at its end.
    pub(crate) close: &'a str,
    /// Part after the delimiter.
    pub(crate) after: Node,
    /// Sequences that neither the text nor its code must contain.
    pub(crate) forbidden: &'a [Vec<CharClass>],
    /// Sequences that the text must not contain outside of code.
    pub(crate) forbidden_outside_code: &'a [Vec<CharClass>],
    /// True if it may contain comments.
    pub(crate) has_comments: bool,
    /// True if the reply may end in the text.
    pub(crate) may_stop: bool,
}

impl Prose<'_> {
    /// Builds the text, which has a character that is not white space before its first code or comment.
    pub(crate) fn build(self, builder: &mut GrammarBuilder) -> Node {
        let code_marks = || [sequence_of("`"), sequence_of("~~~")];
        let text = |start: &str, end: &str, is_filled: bool| {
            let forbidden = self.forbidden.iter().chain(self.forbidden_outside_code).cloned();
            let text = FreeText { is_filled, ..FreeText::new(end) }.without(forbidden);
            // The longest token wins: a text that may stop here is never longer than one up to a mark.
            let own_end = (end != self.close).then(|| sequence_of(self.close));
            let text = Node::Text(text.without(code_marks()).without(own_end));
            if start.is_empty() { text } else { Node::token([Node::literal(start), text]) }
        };
        let in_span = CharClass::of("`\n\r<＜").negate();
        let span = Node::token([Node::Class(in_span).repeat(1, Some(200)), Node::literal("`")]);
        let code = FreeText::new("\n```\n").without([sequence_of("```"), sequence_of("~~~")]);
        let code = Node::Text(code.without(self.forbidden.iter().cloned()));
        let info = Node::Class(CharClass::new([('a', 'z'), ('A', 'Z'), ('0', '9')])).repeat(0, Some(16));
        let fence = Node::token([info, Node::literal("\n"), code]);
        let comment = FreeText::new(" -->").without(["--", "<", "＜"].map(sequence_of)).filled();
        let index = builder.reserve_rule("prose");
        let parts = |start: &str, is_filled: bool| {
            let with = |end: &str, part: Node| {
                let before = text(start, end, is_filled && !self.may_stop);
                Node::sequence([before, part, Node::Rule(index)])
            };
            // A reply of calls needs no text.
            let closed = text(start, self.close, is_filled && !self.may_stop);
            let closed = Node::sequence([closed, self.after.clone()]);
            let comments = self.has_comments.then(|| with("<!-- ", Node::Text(comment.clone())));
            let stopped = self.may_stop.then(|| text(start, "", is_filled));
            let code = [with("`", span.clone()), with("\n```", fence.clone())];
            Node::choice([closed].into_iter().chain(code).chain(comments).chain(stopped))
        };
        builder.rules[index].1 = parts("", false);
        parts(self.open, true)
    }
}
