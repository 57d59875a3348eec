//! Commands of MVU, `_.set('a.b', 1);//why`, as operations on the state (F-140). Values are read, never evaluated as code: what
//! can be calculated is numbers with the four operations and a few functions.

mod sum;
mod value;

use serde_json::Value;

use super::rules;
use crate::dialect::Output;
use crate::finding::{Report, clip};
use crate::lex::space::{is_space, trim};
use crate::limits::Limits;
use crate::span::Place;
use crate::state::{Op, Operation, Path, Step};

/// What a text of commands says.
#[derive(Default)]
pub(super) struct Commands {
    pub(super) operations: Vec<Operation>,
    /// Why, and text beside the commands.
    pub(super) reasons: Vec<String>,
}

/// Brackets that may be open in a command.
const DEPTH: usize = 64;

/// Operations that one object is taken apart into.
const LEAVES: usize = 1000;

/// Reads the commands of a text that stands at `at`.
pub(super) fn read(text: &str, at: Place, limits: &Limits, out: &mut dyn Output) -> Commands {
    let mut found = Commands::default();
    let (mut from, mut place, mut counted) = (0, at, 0);
    while let Some(start) = text[from..].find("_.").map(|start| from + start) {
        found.beside(&text[from..start]);
        place.advance(&text[counted..start]);
        counted = start;
        match command(&text[start..]) {
            Some(Command { name, args, end }) => {
                from = start + end;
                let reason = reason(&text[from..]);
                from += reason.map_or(0, |(len, _)| len);
                found.add(name, &args, limits);
                found.reasons.extend(reason.map(|(_, why)| why.to_owned()));
                if let Some(report) = found.last_report(name, place, place.offset + end) {
                    out.report(report);
                }
            }
            None => {
                // Up to the next one, or the end of the line.
                let rest = &text[start + 2..];
                let rest = &rest[..rest.find("_.").unwrap_or(rest.len())];
                let len = 2 + rest.find('\n').unwrap_or(rest.len());
                let written = &text[start..start + len];
                let message = format!("`{}` is no command", clip(trim(written), 60));
                let report = Report::new(rules::COMMAND_INVALID, place, place.offset + len, message);
                out.report(report.repaired("not carried out"));
                let none = Operation::stored(String::new(), String::new(), Some(Value::from(written)));
                found.operations.push(none);
                from = start + len;
            }
        }
    }
    found.beside(&text[from..]);
    found
}

/// A command: its name, what stands between its brackets, and its bytes.
struct Command<'a> {
    name: &'a str,
    args: Vec<&'a str>,
    end: usize,
}

/// The command that a text begins with. The semicolon follows its bracket directly.
fn command(text: &str) -> Option<Command<'_>> {
    let rest = &text[2..];
    let len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let inside = rest[len..].strip_prefix('(')?;
    let (args, read) = arguments(inside)?;
    inside[read..].starts_with(");").then(|| Command {
        name: &rest[..len],
        args,
        end: 2 + len + 1 + read + 2,
    })
}

/// Arguments up to the closing bracket, and the bytes before that.
fn arguments(text: &str) -> Option<(Vec<&str>, usize)> {
    let (mut args, mut from, mut depth) = (Vec::new(), 0, 0);
    let (mut quote, mut escaped) = (None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), b'\\') => escaped = !escaped,
            (Some(open), byte) if byte == open && !escaped => quote = None,
            (Some(_), _) => escaped = false,
            // The next command begins: this one has no end.
            (None, b'_')
                if text[at..].starts_with("_.")
                    && text[..at].trim_end_matches([' ', '\t']).ends_with('\n') =>
            {
                return None;
            }
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => {
                depth += 1;
                if depth > DEPTH {
                    return None;
                }
            }
            (None, b')') if depth == 0 => {
                args.push(trim(&text[from..at]));
                args.retain(|arg| !arg.is_empty());
                return Some((args, at));
            }
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                args.push(trim(&text[from..at]));
                from = at + 1;
            }
            (None, _) => {}
        }
    }
    None
}

/// The reason behind a command, which may begin on the next line; with all its bytes.
fn reason(text: &str) -> Option<(usize, &str)> {
    let blank = text.len() - text.trim_start_matches(is_space).len();
    let rest = text[blank..].strip_prefix("//")?;
    let len = rest.find('\n').unwrap_or(rest.len());
    Some((blank + 2 + len, trim(&rest[..len]))).filter(|(_, why)| !why.is_empty())
}

impl Commands {
    /// Text beside commands.
    fn beside(&mut self, text: &str) {
        let text = trim(text).trim_matches(';');
        if !text.is_empty() {
            self.reasons.push(text.to_owned());
        }
    }

    /// What is wrong with the last one.
    fn last_report(&self, name: &str, place: Place, end: usize) -> Option<Report> {
        let refusal = self.operations.last()?.refusal()?;
        let report =
            Report::new(rules::COMMAND_INVALID, place, end, format!("`_.{name}`: {}", refusal.message));
        Some(report.repaired("not carried out"))
    }

    fn add(&mut self, name: &str, args: &[&str], limits: &Limits) {
        let read = |text: &&str| value::read(text, limits);
        let refused = |op: &str| {
            let path = args.first().map_or(String::new(), |path| value::unquoted(path).to_owned());
            let value = args.get(1..).and_then(<[&str]>::last).map(|text| Value::from(*text));
            Operation::stored(op.to_owned(), path, value)
        };
        let Some(path) = args.first().and_then(|path| path_of(value::unquoted(path))) else {
            return self.operations.push(refused(""));
        };
        match (name, &args[1..]) {
            // An old value is never compared.
            ("set", [new] | [_, new]) => self.operations.push(Operation::new(Op::Set, path, Some(read(new)))),
            ("add", [delta]) => self.operations.push(Operation::new(Op::Add, path, Some(read(delta)))),
            ("assign" | "insert", [new]) => match read(new) {
                Value::Object(fields) => self.merge(&path, &Value::Object(fields)),
                value => self.operations.push(Operation::new(Op::Push, path, Some(value))),
            },
            ("assign" | "insert", [key, new]) => match read(key) {
                Value::String(key) if key == "-" => {
                    self.operations.push(Operation::new(Op::Push, path, Some(read(new))));
                }
                // Something in the middle of a list.
                Value::Number(_) => self.operations.push(refused("insert")),
                key => match below(&path, &key) {
                    Some(path) => self.operations.push(Operation::new(Op::Set, path, Some(read(new)))),
                    None => self.operations.push(refused("")),
                },
            },
            ("remove" | "unset" | "delete", []) => {
                self.operations.push(Operation::new(Op::Delete, path, None))
            }
            ("remove" | "unset" | "delete", [key]) => match below(&path, &read(key)) {
                Some(path) => self.operations.push(Operation::new(Op::Delete, path, None)),
                None => self.operations.push(refused("")),
            },
            ("set" | "add" | "assign" | "insert" | "remove" | "unset" | "delete", _) => {
                self.operations.push(refused(""));
            }
            _ => self.operations.push(refused(name)),
        }
    }

    /// Sets the leaves of an object.
    fn merge(&mut self, path: &Path, value: &Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() && self.operations.len() < LEAVES => {
                for (key, value) in fields {
                    if let Some(path) = below(path, &Value::from(key.as_str())) {
                        self.merge(&path, value);
                    }
                }
            }
            value => self.operations.push(Operation::new(Op::Set, path.clone(), Some(value.clone()))),
        }
    }
}

/// The place of a key or an element below a path.
fn below(path: &Path, key: &Value) -> Option<Path> {
    let step = match key {
        Value::String(key) => Step::Key(key.clone()),
        Value::Number(number) => Step::Index(number.as_i64()?),
        _ => return None,
    };
    Path::new(path.steps().iter().cloned().chain([step]).collect())
}

/// A path as lodash writes it: `a.b`, `a[0]`, `a.0`, `a["b c"]`, `a.'b'`, `a[键]`.
fn path_of(text: &str) -> Option<Path> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (step, after) = if let Some(inside) = rest.strip_prefix('[') {
            let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\''));
            let end = match quote {
                Some(quote) => inside[1..].find(quote)? + 2,
                None => inside.find(']')?,
            };
            let key = trim(&inside[..end]);
            let step = match (quote, key.parse()) {
                (None, Ok(index)) => Step::Index(index),
                _ => Step::Key(value::unquoted(key).to_owned()),
            };
            (step, inside[end..].strip_prefix(']')?)
        } else {
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let end = match quote {
                Some(quote) => rest[1..].find(quote)? + 2,
                None => rest.find(['.', '[']).unwrap_or(rest.len()),
            };
            let key = trim(&rest[..end]);
            let digits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
            let key = value::unquoted(key).to_owned();
            (
                if digits && quote.is_none() && !steps.is_empty() {
                    Step::Token(key)
                } else {
                    Step::Key(key)
                },
                &rest[end..],
            )
        };
        steps.push(step);
        rest = match after.strip_prefix('.') {
            Some("") => return None,
            Some(more) => more,
            None if after.is_empty() || after.starts_with('[') => after,
            None => return None,
        };
    }
    Path::new(steps)
}
