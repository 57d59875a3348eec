//! Commands of MVU, `_.set('a.b', 1);//why`, as state operations (F-140). Values are parsed, never evaluated
//! as code or computed. Commands whose meaning depends on the state are resolved when they are
//! applied.

mod code;
mod command_value;

use code::Flow;
use command_value::{COMPUTED_VALUE_FAULT, UnknownEscape};
use serde_json::Value;

use super::{body, operation_findings, rules};
use crate::dialect::IntentSink;
use crate::finding::{FindingReport, clip};
use crate::lex::space::{is_space, trim};
use crate::limits::Limits;
use crate::span::Place;
use crate::state::{Op, Operation, RefusalReason, StateCommand as Settled, StatePath, StateStep};

/// Commands read from a text.
#[derive(Default)]
pub(super) struct MvuCommands {
    pub(super) operations: Vec<Operation>,
    /// Reasons, and text between the commands.
    pub(super) reasons: Vec<String>,
    /// Set if the last command is truncated (F-214).
    pub(super) is_truncated: bool,
}

/// Most brackets that may be open in a command.
const MAX_BRACKET_DEPTH: usize = 64;

/// Most operations that one object is split into.
const MAX_LEAVES: usize = 1000;

/// Reads the commands of a text at `at`. The block has `before` earlier operations.
pub(super) fn read_commands(
    (text, at): (&str, Place),
    before: usize,
    limits: &Limits,
    out: &mut dyn IntentSink,
) -> MvuCommands {
    let mut found = MvuCommands::default();
    let mut flow = Flow::default();
    let (mut from, mut place, mut counted_end) = (0, at, 0);
    while let Some(start) = text[from..].find("_.").map(|start| from + start) {
        flow.text(&text[from..start]);
        if let Some(end) = comment_end(&text[from..start], &text[start..]) {
            found.add_text(&text[from..start + end]);
            from = start + end;
            continue;
        }
        found.add_text(&text[from..start]);
        place.advance(&text[counted_end..start]);
        counted_end = start;
        match parse_command(&text[start..]) {
            Ok(MvuCommand { name, args, end }) => {
                from = start + end;
                let operation_count = found.operations.len();
                let reason = parse_reason(&text[from..]);
                from += reason.map_or(0, |(len, _)| len);
                match flow.command() {
                    true => found.refuse(
                        name,
                        &args,
                        "a command that may not be meant to run: the text around it is code",
                    ),
                    false => found.add_command(name, &args, &flow, limits),
                }
                found.reasons.extend(reason.map(|(_, why)| why.to_owned()));
                if let Some(report) =
                    found.first_refusal_report((operation_count, before), name, place, place.offset + end)
                {
                    report_duplicate_keys(&text[start..from], &args, place, limits, out);
                    out.report(report);
                }
            }
            Err(fault) => {
                // Up to the next command, or the end of the line.
                let rest = &text[start + 2..];
                found.is_truncated |= fault == CommandFault::Truncated && !rest.contains("_.");
                let next = rest.find("_.");
                let rest = &rest[..next.unwrap_or(rest.len())];
                let line = rest.find('\n');
                let len = 2 + line.unwrap_or(rest.len());
                let command_text = &text[start..start + len];
                flow.fault(command_text, next.is_some() && line.is_none());
                let message = format!("`{}` is not a command", clip(trim(command_text), 60));
                let report = FindingReport::new(rules::COMMAND_INVALID, place, place.offset + len, message);
                out.report(report.with_repair("not carried out"));
                let no_operation =
                    Operation::from_stored(String::new(), String::new(), Some(Value::from(command_text)));
                found.operations.push(no_operation);
                from = start + len;
            }
        }
    }
    found.add_text(&text[from..]);
    found
}

/// Returns the length of `rest` up to the end of a comment that `before` leaves open, if any. A command in a
/// comment is an example.
fn comment_end(before: &str, rest: &str) -> Option<usize> {
    let line = before.rfind('\n').map_or(before, |at| &before[at..]);
    if ["//", "#", "--"].iter().any(|mark| trim(line).starts_with(mark)) {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    [("/*", "*/"), ("<!--", "-->")].into_iter().find_map(|(open_mark, end)| {
        let inner = &before[before.rfind(open_mark)? + open_mark.len()..];
        let open = !inner.contains(end);
        open.then(|| rest.find(end).map_or(rest.len(), |at| at + end.len()))
    })
}

/// A command: its name, its arguments, and its length.
struct MvuCommand<'a> {
    name: &'a str,
    args: Vec<&'a str>,
    end: usize,
}

/// Reason why a text does not begin with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandFault {
    /// The text is not a command.
    NotACommand,
    /// The command is truncated by the end of the text.
    Truncated,
}

/// Parses the command at the beginning of a text. The semicolon must follow the bracket directly.
fn parse_command(text: &str) -> Result<MvuCommand<'_>, CommandFault> {
    let rest = &text[2..];
    let len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    if len == rest.len() {
        return Err(CommandFault::Truncated);
    }
    let args_text = rest[len..].strip_prefix('(').ok_or(CommandFault::NotACommand)?;
    let (args, read) = parse_arguments(args_text)?;
    match args_text[read..].starts_with(");") {
        true => Ok(MvuCommand { name: &rest[..len], args, end: 2 + len + 1 + read + 2 }),
        false => Err(CommandFault::NotACommand),
    }
}

/// Reports duplicate keys in the arguments of a refused command that begins at `at`.
fn report_duplicate_keys(
    command: &str,
    args: &[&str],
    mut at: Place,
    limits: &Limits,
    out: &mut dyn IntentSink,
) {
    let mut counted_end = 0;
    let mut from = command.find('(').map_or(0, |open| open + 1);
    for arg in args {
        // Only blanks and commas separate arguments.
        let Some(start) = command[from..].find(arg).map(|start| from + start) else { return };
        from = start + arg.len();
        if let Some(report) = command_value::duplicate_key_report(arg, limits) {
            at.advance(&command[counted_end..start]);
            counted_end = start;
            out.report(FindingReport { repair: None, ..body::move_report(report, at) });
        }
    }
}

/// Returns the arguments up to the closing bracket, and the bytes before that.
fn parse_arguments(text: &str) -> Result<(Vec<&str>, usize), CommandFault> {
    let (mut args, mut from, mut depth) = (Vec::new(), 0, 0);
    let (mut quote, mut escaped) = (None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), b'\\') => escaped = !escaped,
            (Some(open), byte) if byte == open && !escaped => quote = None,
            (Some(_), _) => escaped = false,
            // The next command begins: this one is unterminated.
            (None, b'_')
                if text[at..].starts_with("_.")
                    && text[..at].trim_end_matches([' ', '\t']).ends_with('\n') =>
            {
                return Err(CommandFault::NotACommand);
            }
            (None, b'\'' | b'"' | b'`') => quote = Some(byte),
            (None, b'(' | b'[' | b'{') => {
                depth += 1;
                if depth > MAX_BRACKET_DEPTH {
                    return Err(CommandFault::NotACommand);
                }
            }
            (None, b')') if depth == 0 => {
                // A comma may stand behind the last one.
                args.extend(Some(trim(&text[from..at])).filter(|arg| !arg.is_empty()));
                return Ok((args, at));
            }
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                args.push(trim(&text[from..at]));
                from = at + 1;
            }
            (None, _) => {}
        }
    }
    Err(CommandFault::Truncated)
}

/// Returns the reason after a command, which may begin on the next line, and its length.
fn parse_reason(text: &str) -> Option<(usize, &str)> {
    let blank_len = text.len() - text.trim_start_matches(is_space).len();
    let rest = text[blank_len..].strip_prefix("//")?;
    let len = rest.find('\n').unwrap_or(rest.len());
    Some((blank_len + 2 + len, trim(&rest[..len]))).filter(|(_, why)| !why.is_empty())
}

/// Returns the report on a value that may not be the one meant.
pub(super) fn guessed_report(message: &str, place: Place, end: usize) -> FindingReport {
    let report = FindingReport::new(rules::VALUE_GUESSED, place, end, message);
    report.with_repair("it is not carried out, its value is not used")
}

impl MvuCommands {
    /// Adds text between the commands.
    fn add_text(&mut self, text: &str) {
        let text = trim(text).trim_matches(';');
        if !text.is_empty() {
            self.reasons.push(text.to_owned());
        }
    }

    /// Reports the first refused operation from an index on; the block has `before` earlier operations.
    fn first_refusal_report(
        &self,
        (from, before): (usize, usize),
        name: &str,
        place: Place,
        end: usize,
    ) -> Option<FindingReport> {
        // The state decides about the others, but not about their values.
        let is_refused = |operation: &Operation| {
            let value =
                |reason| matches!(reason, RefusalReason::NumberOutOfRange | RefusalReason::ValueGuessed);
            operation.refusal().is_some_and(|refusal| operation.command().is_none() || value(refusal.reason))
        };
        let at = from + self.operations[from..].iter().position(is_refused)?;
        let refused_operation = &self.operations[at];
        let refusal = refused_operation.refusal()?;
        let report = match refusal.reason {
            RefusalReason::NumberOutOfRange => refused_operation.report(place, end)?,
            RefusalReason::ValueGuessed => guessed_report(&refusal.message, place, end),
            _ => {
                let message = format!("`_.{name}`: {}", refusal.message);
                FindingReport::new(rules::COMMAND_INVALID, place, end, message).with_repair("not carried out")
            }
        };
        Some(operation_findings::name_operation(before + at + 1, refused_operation, report))
    }

    /// Adds an operation that nobody carries out, since something of it was guessed.
    fn refuse(&mut self, name: &str, args: &[&str], message: &str) {
        let op = if name == "add" { Op::Add } else { Op::Set };
        let path = path_of(args).unwrap_or_default();
        self.operations.push(match parse_lodash_path(&path).and_then(StatePath::new) {
            Some(path) => {
                Operation::new(op, path, Some(0.into())).refuse(RefusalReason::ValueGuessed, message)
            }
            // An invalid path is kept as written, and so is the value.
            None => {
                let value = args.get(1..).and_then(<[&str]>::last).map(|text| Value::from(*text));
                Operation::from_stored(String::new(), path, value)
            }
        });
    }

    fn add_command(&mut self, name: &str, args: &[&str], flow: &Flow<'_>, limits: &Limits) {
        if let Some(message) = argument_doubt(args, flow) {
            return self.refuse(name, args, &message);
        }
        let path = path_of(args);
        let refuse = |op: &str| {
            let value = args.get(1..).and_then(<[&str]>::last).map(|text| Value::from(*text));
            Operation::from_stored(op.to_owned(), path.clone().unwrap_or_default(), value)
        };
        let Some(steps) = path.as_deref().and_then(parse_lodash_path) else {
            return self.operations.push(refuse(""));
        };
        // A guessed value refuses only its own command.
        let mut values = Vec::with_capacity(args.len());
        let old_count = usize::from(name == "set" && args.len() == 3);
        for text in &args[1 + old_count..] {
            let read = match flow.is_variable(text) {
                true => Err(COMPUTED_VALUE_FAULT.to_owned()),
                false => command_value::parse_value(text, limits),
            };
            match read {
                Ok(value) => values.push(value),
                Err(why) => {
                    let message = format!("`{}` is not a value: {why}", clip(text, 60));
                    return self.refuse(name, args, &message);
                }
            }
        }
        let state_path = StatePath::new(steps.clone());
        let operation = |op: Op, value: Option<Value>| match &state_path {
            Some(path) => Operation::new(op, path.clone(), value),
            None => refuse(name),
        };
        let new_operation = match (name, &mut values[..]) {
            // The old value is never compared.
            ("set", [new]) => match (new.take(), &state_path) {
                (Value::Object(fields), None) => refuse(name).with_command(Settled::Root(fields)),
                (value, Some(_)) => {
                    let text = value.is_string();
                    let set = operation(Op::Set, Some(value));
                    if text { set.with_command(Settled::Number) } else { set }
                }
                (_, None) => refuse(name),
            },
            ("add", [delta]) => operation(Op::Add, Some(delta.take())),
            ("assign" | "insert", [new]) => match new.take() {
                Value::Object(fields) => return self.add_leaves(&steps, &Value::Object(fields)),
                value => operation(Op::Push, Some(value)),
            },
            ("assign" | "insert", [key, new]) => {
                let (key, new) = (key.take(), new.take());
                if key == "-" {
                    operation(Op::Push, Some(new))
                } else {
                    // The state decides whether this is a list or an object.
                    let set = match (&key, path_below(&steps, &key)) {
                        (Value::String(_), Some(path)) => Operation::new(Op::Set, path, Some(new.clone())),
                        _ => refuse("insert"),
                    };
                    match &state_path {
                        Some(path) => {
                            set.with_command(Settled::Insert { path: path.clone(), key, value: new })
                        }
                        None => set,
                    }
                }
            }
            ("remove" | "unset" | "delete", []) => operation(Op::Delete, None),
            ("remove" | "unset" | "delete", [key]) => {
                let key = key.take();
                let delete = match path_below(&steps, &key) {
                    Some(path) => Operation::new(Op::Delete, path, None),
                    None => refuse("remove"),
                };
                match &state_path {
                    Some(path) => delete.with_command(Settled::Remove { path: path.clone(), key }),
                    None => delete,
                }
            }
            ("set" | "add" | "assign" | "insert" | "remove" | "unset" | "delete", _) => refuse(""),
            // One of ours is no command, and its value is not read as one of them.
            _ if Op::from_name(name).is_some() => refuse(&format!("_.{name}")),
            _ => refuse(name),
        };
        self.operations.push(new_operation);
    }

    /// Adds operations that set the leaves of an object.
    fn add_leaves(&mut self, steps: &[StateStep], value: &Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() && self.operations.len() < MAX_LEAVES => {
                for (key, value) in fields {
                    if let Some(path) = path_below(steps, &Value::from(key.as_str())) {
                        self.add_leaves(path.steps(), value);
                    }
                }
            }
            value => {
                let path = StatePath::new(steps.to_vec());
                self.operations.extend(path.map(|path| Operation::new(Op::Set, path, Some(value.clone()))));
            }
        }
    }
}

/// The path of a command, as it is written.
fn path_of(args: &[&str]) -> Option<String> {
    args.first()
        .map(|path| command_value::unescape(command_value::strip_quotes(path), UnknownEscape::DropBackslash))
}

/// Returns the doubt about the arguments of a command, whatever it does: one is missing, or may be several, or the path is
/// computed.
fn argument_doubt(args: &[&str], flow: &Flow<'_>) -> Option<String> {
    if args.iter().any(|arg| arg.is_empty()) {
        return Some("an argument is missing between two commas".to_owned());
    }
    if let Some(spread_arg) = args.iter().find(|arg| arg.starts_with("...")) {
        return Some(format!("`{}` may expand to any number of arguments", clip(spread_arg, 60)));
    }
    let path = args.first()?;
    let is_computed = match command_value::quoted_content(path) {
        Some(_) => code::has_template(path),
        None => flow.is_variable(path) || code::is_path_computed(path),
    };
    is_computed.then(|| format!("`{}` is not a path: {COMPUTED_VALUE_FAULT}", clip(path, 60)))
}

/// The place of a key or an element below a path.
fn path_below(steps: &[StateStep], key: &Value) -> Option<StatePath> {
    let step = match key {
        Value::String(key) => StateStep::Key(key.clone()),
        Value::Number(number) => StateStep::Index(number.as_i64()?),
        _ => return None,
    };
    StatePath::new(steps.iter().cloned().chain([step]).collect())
}

/// Parses a path as lodash writes it: `a.b`, `a[0]`, `a.0`, `a["b c"]`, `a.'b'`, `a[键]`. An empty path is the
/// root.
fn parse_lodash_path(text: &str) -> Option<Vec<StateStep>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (step, after) = if let Some(inner) = rest.strip_prefix('[') {
            let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''));
            let end = match quote {
                Some(quote) => inner[1..].find(quote)? + 2,
                None => inner.find(']')?,
            };
            let key = trim(&inner[..end]);
            let step = match (quote, key.parse()) {
                (None, Ok(index)) => StateStep::Index(index),
                _ => StateStep::Key(command_value::strip_quotes(key).to_owned()),
            };
            (step, inner[end..].strip_prefix(']')?)
        } else {
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
            let end = match quote {
                Some(quote) => rest[1..].find(quote)? + 2,
                None => rest.find(['.', '[']).unwrap_or(rest.len()),
            };
            let key = trim(&rest[..end]);
            let digits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
            let key = command_value::strip_quotes(key).to_owned();
            (
                if digits && quote.is_none() && !steps.is_empty() {
                    StateStep::Token(key)
                } else {
                    StateStep::Key(key)
                },
                &rest[end..],
            )
        };
        steps.push(step);
        rest = match after.strip_prefix('.') {
            Some("") => return None,
            Some(tail) => tail,
            None if after.is_empty() || after.starts_with('[') => after,
            None => return None,
        };
    }
    let is_empty_key =
        |step: &StateStep| matches!(step, StateStep::Key(key) | StateStep::Token(key) if key.is_empty());
    (!steps.iter().any(is_empty_key)).then_some(steps)
}
