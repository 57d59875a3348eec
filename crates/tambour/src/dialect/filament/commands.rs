//! Commands of MVU (MagVarUpdate, a SillyTavern extension), such as `_.set('a.b', 1);//why`, read as state
//! operations (F-140). Values are parsed, never evaluated as code or computed. Commands whose meaning
//! depends on the state are resolved when they are applied.

mod code;
mod command_value;

use code::JavaScriptTracker;
use command_value::{COMPUTED_VALUE_FAULT, UnknownEscape};
use serde_json::Value;

use super::{body, operation_findings, rules};
use crate::dialect::{IntentSink, MAX_EXCERPT_CHARS};
use crate::finding::{FindingReport, clip};
use crate::lex::space::{is_space, trim};
use crate::limits::Limits;
use crate::span::Place;
use crate::state::{Op, Operation, RefusalReason, StateCommand, StatePath, StateStep};

/// Commands read from a text.
#[derive(Default)]
pub(super) struct MvuCommands {
    /// Operations in order, refused ones included.
    pub(super) operations: Vec<Operation>,
    /// Reasons after the commands, and text between the commands.
    pub(super) reasons: Vec<String>,
    /// Set if the last command is truncated (F-214).
    pub(super) is_truncated: bool,
}

/// Maximum depth of nested brackets in a command.
const MAX_BRACKET_DEPTH: usize = 64;

/// Number of operations after which objects are no longer split into one operation per field.
const MAX_LEAVES: usize = 1000;

/// Reads the commands of a text at the place `at`. The block has `earlier_count` operations before them.
pub(super) fn read_commands(
    (text, at): (&str, Place),
    earlier_count: usize,
    limits: &Limits,
    out: &mut dyn IntentSink,
) -> MvuCommands {
    let mut commands = MvuCommands::default();
    let mut tracker = JavaScriptTracker::default();
    // `place` is the place of the offset `counted_end`.
    let (mut read_end, mut place, mut counted_end) = (0, at, 0);
    while let Some(start) = text[read_end..].find("_.").map(|offset| read_end + offset) {
        tracker.push_text(&text[read_end..start]);
        if let Some(len) = open_comment_len(&text[read_end..start], &text[start..]) {
            commands.add_text(&text[read_end..start + len]);
            read_end = start + len;
            continue;
        }
        commands.add_text(&text[read_end..start]);
        place.advance(&text[counted_end..start]);
        counted_end = start;
        match parse_command(&text[start..]) {
            Ok(MvuCommand { name, args, len }) => {
                read_end = start + len;
                let operation_count = commands.operations.len();
                let reason = parse_reason(&text[read_end..]);
                read_end += reason.map_or(0, |(reason_len, _)| reason_len);
                let is_run_uncertain = tracker.push_command();
                match is_run_uncertain {
                    true => commands.refuse(
                        name,
                        &args,
                        "a command that may not be meant to run: the text around it is code",
                    ),
                    false => commands.add_command(name, &args, &tracker, limits),
                }
                commands.reasons.extend(reason.map(|(_, why)| why.to_owned()));
                let end = place.offset + len;
                if let Some(report) =
                    commands.first_refusal_report(operation_count, earlier_count, name, place, end)
                {
                    report_duplicate_keys(&text[start..read_end], &args, place, limits, out);
                    out.report(report);
                }
            }
            Err(fault) => {
                // The faulty text ends at the next command, or at the end of the line.
                let text_after = &text[start + 2..];
                let next_command = text_after.find("_.");
                commands.is_truncated |= fault == CommandFault::Truncated && next_command.is_none();
                let text_before_next = &text_after[..next_command.unwrap_or(text_after.len())];
                let line_end = text_before_next.find('\n');
                let len = 2 + line_end.unwrap_or(text_before_next.len());
                let command_text = &text[start..start + len];
                let precedes_command = next_command.is_some() && line_end.is_none();
                tracker.push_invalid_command(command_text, precedes_command);
                let message = format!("`{}` is not a command", clip(trim(command_text), MAX_EXCERPT_CHARS));
                let report = FindingReport::new(rules::COMMAND_INVALID, place, place.offset + len, message);
                out.report(report.with_repair("not carried out"));
                let invalid_operation =
                    Operation::from_stored(String::new(), String::new(), Some(Value::from(command_text)));
                commands.operations.push(invalid_operation);
                read_end = start + len;
            }
        }
    }
    commands.add_text(&text[read_end..]);
    commands
}

/// Returns the length of `rest` up to the end of the comment that is open after `before`; `None` if no
/// comment is open. A command in a comment is an example.
fn open_comment_len(before: &str, rest: &str) -> Option<usize> {
    let line = before.rfind('\n').map_or(before, |line_feed| &before[line_feed..]);
    if ["//", "#", "--"].iter().any(|mark| trim(line).starts_with(mark)) {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    [("/*", "*/"), ("<!--", "-->")].into_iter().find_map(|(open_mark, end_mark)| {
        let inner = &before[before.rfind(open_mark)? + open_mark.len()..];
        let is_open = !inner.contains(end_mark);
        is_open.then(|| rest.find(end_mark).map_or(rest.len(), |index| index + end_mark.len()))
    })
}

/// A command as written.
struct MvuCommand<'a> {
    /// Name without `_.`.
    name: &'a str,
    /// Source texts of the arguments.
    args: Vec<&'a str>,
    /// Length of the command in bytes, from `_.` to the semicolon.
    len: usize,
}

/// Reason why a text does not begin with a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandFault {
    /// The text is not a command.
    NotACommand,
    /// The command is truncated by the end of the text.
    Truncated,
}

/// Parses the command at the beginning of a text, which begins with `_.`. The semicolon must directly follow
/// the closing bracket.
fn parse_command(text: &str) -> Result<MvuCommand<'_>, CommandFault> {
    let rest = &text[2..];
    let name_len = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    if name_len == rest.len() {
        return Err(CommandFault::Truncated);
    }
    let args_text = rest[name_len..].strip_prefix('(').ok_or(CommandFault::NotACommand)?;
    let (args, args_len) = parse_arguments(args_text)?;
    let len = "_.".len() + name_len + "(".len() + args_len + ");".len();
    match args_text[args_len..].starts_with(");") {
        true => Ok(MvuCommand { name: &rest[..name_len], args, len }),
        false => Err(CommandFault::NotACommand),
    }
}

/// Reports duplicate keys in the arguments of a refused command, whose source text `command` begins at `at`
///
fn report_duplicate_keys(
    command: &str,
    args: &[&str],
    mut at: Place,
    limits: &Limits,
    out: &mut dyn IntentSink,
) {
    let mut counted_end = 0;
    let mut search_start = command.find('(').map_or(0, |bracket| bracket + 1);
    for arg in args {
        // Only blanks and commas separate arguments.
        let Some(start) = command[search_start..].find(arg).map(|offset| search_start + offset) else {
            return;
        };
        search_start = start + arg.len();
        if let Some(report) = command_value::duplicate_key_report(arg, limits) {
            at.advance(&command[counted_end..start]);
            counted_end = start;
            out.report(FindingReport { repair: None, ..body::move_report(report, at) });
        }
    }
}

/// Returns the arguments up to the closing bracket, and the number of bytes before that bracket.
fn parse_arguments(text: &str) -> Result<(Vec<&str>, usize), CommandFault> {
    let (mut args, mut arg_start, mut depth) = (Vec::new(), 0, 0);
    let (mut quote, mut is_escaped) = (None, false);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(_), b'\\') => is_escaped = !is_escaped,
            (Some(open_quote), byte) if byte == open_quote && !is_escaped => quote = None,
            (Some(_), _) => is_escaped = false,
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
                // A comma may follow the last argument.
                args.extend(Some(trim(&text[arg_start..at])).filter(|arg| !arg.is_empty()));
                return Ok((args, at));
            }
            (None, b')' | b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                args.push(trim(&text[arg_start..at]));
                arg_start = at + 1;
            }
            (None, _) => {}
        }
    }
    Err(CommandFault::Truncated)
}

/// Returns the reason for a command, which is the text of a comment after the command or on the next line.
/// Also returns the length in bytes of that comment, with the white space before it.
fn parse_reason(text: &str) -> Option<(usize, &str)> {
    let blank_len = text.len() - text.trim_start_matches(is_space).len();
    let rest = text[blank_len..].strip_prefix("//")?;
    let len = rest.find('\n').unwrap_or(rest.len());
    Some((blank_len + 2 + len, trim(&rest[..len]))).filter(|(_, why)| !why.is_empty())
}

/// Returns the report on an operation whose value may differ from the intended one.
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

    /// Returns the report on the first refused operation of the command `name`, whose operations begin at the
    /// index `start`. The block has `earlier_count` operations before these commands.
    fn first_refusal_report(
        &self,
        start: usize,
        earlier_count: usize,
        name: &str,
        place: Place,
        end: usize,
    ) -> Option<FindingReport> {
        // The state decides whether an operation with a command is refused, unless its value is at fault.
        let is_refused = |operation: &Operation| {
            let is_value_fault =
                |reason| matches!(reason, RefusalReason::NumberOutOfRange | RefusalReason::ValueGuessed);
            operation
                .refusal()
                .is_some_and(|refusal| operation.command().is_none() || is_value_fault(refusal.reason))
        };
        let index = start + self.operations[start..].iter().position(is_refused)?;
        let refused_operation = &self.operations[index];
        let refusal = refused_operation.refusal()?;
        let report = match refusal.reason {
            RefusalReason::NumberOutOfRange => refused_operation.report(place, end)?,
            RefusalReason::ValueGuessed => guessed_report(&refusal.message, place, end),
            _ => {
                let message = format!("`_.{name}`: {}", refusal.message);
                FindingReport::new(rules::COMMAND_INVALID, place, end, message).with_repair("not carried out")
            }
        };
        Some(operation_findings::name_operation(earlier_count + index + 1, refused_operation, report))
    }

    /// Adds an operation that is refused with `message`, because a part of its command would have to be
    /// guessed.
    fn refuse(&mut self, name: &str, args: &[&str], message: &str) {
        let op = if name == "add" { Op::Add } else { Op::Set };
        let path = path_of(args).unwrap_or_default();
        self.operations.push(match parse_lodash_path(&path).and_then(StatePath::new) {
            Some(path) => {
                // 0 takes the place of the value, which is not known.
                Operation::new(op, path, Some(0.into())).refuse(RefusalReason::ValueGuessed, message)
            }
            // An invalid path is kept as written, and so is the value.
            None => {
                let value = args.get(1..).and_then(<[&str]>::last).map(|text| Value::from(*text));
                Operation::from_stored(String::new(), path, value)
            }
        });
    }

    /// Adds the operations of a command, refused ones included.
    fn add_command(&mut self, name: &str, args: &[&str], tracker: &JavaScriptTracker<'_>, limits: &Limits) {
        if let Some(message) = argument_doubt(args, tracker) {
            return self.refuse(name, args, &message);
        }
        let path = path_of(args);
        // An operation as written, which is refused because its name or its path is invalid.
        let refused_operation = |op: &str| {
            let value = args.get(1..).and_then(<[&str]>::last).map(|text| Value::from(*text));
            Operation::from_stored(op.to_owned(), path.clone().unwrap_or_default(), value)
        };
        let Some(steps) = path.as_deref().and_then(parse_lodash_path) else {
            return self.operations.push(refused_operation(""));
        };
        // If a value cannot be read, only its own command is refused.
        let mut values = Vec::with_capacity(args.len());
        // `set` may give the old value before the new one. The old value is not read, since it is never
        // compared.
        let old_value_count = usize::from(name == "set" && args.len() == 3);
        for text in &args[1 + old_value_count..] {
            let parsed_value = match tracker.is_variable(text) {
                true => Err(COMPUTED_VALUE_FAULT.to_owned()),
                false => command_value::parse_value(text, limits),
            };
            match parsed_value {
                Ok(value) => values.push(value),
                Err(why) => {
                    let message = format!("`{}` is not a value: {why}", clip(text, MAX_EXCERPT_CHARS));
                    return self.refuse(name, args, &message);
                }
            }
        }
        let state_path = StatePath::new(steps.clone());
        let operation = |op: Op, value: Option<Value>| match &state_path {
            Some(path) => Operation::new(op, path.clone(), value),
            None => refused_operation(name),
        };
        let new_operation = match (name, &mut values[..]) {
            ("set", [new]) => match (new.take(), &state_path) {
                (Value::Object(fields), None) => {
                    refused_operation(name).with_command(StateCommand::Root(fields))
                }
                (value, Some(_)) => {
                    // A text that can be read as a number becomes one if the state has a number there.
                    let is_text = value.is_string();
                    let set = operation(Op::Set, Some(value));
                    if is_text { set.with_command(StateCommand::Number) } else { set }
                }
                (_, None) => refused_operation(name),
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
                        _ => refused_operation("insert"),
                    };
                    match &state_path {
                        Some(path) => {
                            set.with_command(StateCommand::Insert { path: path.clone(), key, value: new })
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
                    None => refused_operation("remove"),
                };
                match &state_path {
                    Some(path) => delete.with_command(StateCommand::Remove { path: path.clone(), key }),
                    None => delete,
                }
            }
            ("set" | "add" | "assign" | "insert" | "remove" | "unset" | "delete", _) => refused_operation(""),
            // The name of a state operation is not a command. It keeps its `_.`, so that it is not read as
            // that operation.
            _ if Op::from_name(name).is_some() => refused_operation(&format!("_.{name}")),
            _ => refused_operation(name),
        };
        self.operations.push(new_operation);
    }

    /// Adds operations that set the leaves of `value`, an object at the path `steps`.
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

/// Returns the path of a command, without its quotes and with its escapes decoded; `None` without arguments.
fn path_of(args: &[&str]) -> Option<String> {
    args.first()
        .map(|path| command_value::unescape(command_value::strip_quotes(path), UnknownEscape::DropBackslash))
}

/// Returns the reason why the arguments of a command are in doubt, whatever its name: an argument is missing,
/// one argument may be several, or the path is computed.
fn argument_doubt(args: &[&str], tracker: &JavaScriptTracker<'_>) -> Option<String> {
    if args.iter().any(|arg| arg.is_empty()) {
        return Some("an argument is missing between two commas".to_owned());
    }
    if let Some(spread_arg) = args.iter().find(|arg| arg.starts_with("...")) {
        return Some(format!(
            "`{}` may expand to any number of arguments",
            clip(spread_arg, MAX_EXCERPT_CHARS)
        ));
    }
    let path = args.first()?;
    let is_computed = match command_value::quoted_content(path) {
        Some(_) => code::has_template(path),
        None => tracker.is_variable(path) || code::is_path_computed(path),
    };
    is_computed.then(|| format!("`{}` is not a path: {COMPUTED_VALUE_FAULT}", clip(path, MAX_EXCERPT_CHARS)))
}

/// Returns the path of a key or list element in the value at the path `steps`; `None` if `key` is neither
/// text nor a whole number.
fn path_below(steps: &[StateStep], key: &Value) -> Option<StatePath> {
    let step = match key {
        Value::String(key) => StateStep::Key(key.clone()),
        Value::Number(number) => StateStep::Index(number.as_i64()?),
        _ => return None,
    };
    StatePath::new(steps.iter().cloned().chain([step]).collect())
}

/// Parses a path in the notation of the JavaScript library lodash: `a.b`, `a[0]`, `a.0`, `a["b c"]`, `a.'b'`,
/// `a[键]`. An empty path is the root. `None` if the path is malformed.
fn parse_lodash_path(text: &str) -> Option<Vec<StateStep>> {
    let mut steps = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (step, text_after) = if let Some(inner) = rest.strip_prefix('[') {
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
            let is_number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
            let key = command_value::strip_quotes(key).to_owned();
            (
                // Only the state decides whether a number is an index or a key.
                if is_number && quote.is_none() && !steps.is_empty() {
                    StateStep::Token(key)
                } else {
                    StateStep::Key(key)
                },
                &rest[end..],
            )
        };
        steps.push(step);
        rest = match text_after.strip_prefix('.') {
            Some("") => return None,
            Some(next_step) => next_step,
            None if text_after.is_empty() || text_after.starts_with('[') => text_after,
            None => return None,
        };
    }
    let is_empty_key =
        |step: &StateStep| matches!(step, StateStep::Key(key) | StateStep::Token(key) if key.is_empty());
    (!steps.iter().any(is_empty_key)).then_some(steps)
}
