//! `tambour state apply`: applies operations to a state.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tambour::Profile;
use tambour::schema::Schema;
use tambour::span::Place;
use tambour::state::{ApplyOptions, Operation, RefusalReason, apply, bound_numbers};

use crate::CommandOutcome;
use crate::input;

/// The state tree of a conversation
#[derive(clap::Subcommand)]
#[command(after_help = "Example:\n  \
    echo '{}' >/tmp/s.json; echo '[[\"SET\",\"a\",1]]' | tambour state apply --state /tmp/s.json")]
pub(crate) enum StateCommandLine {
    Apply(StateApplyCommand),
}

/// Apply operations to a state and print the new state; results go to standard error, one JSON object a line
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    echo '{}' >/tmp/s.json; echo '[[\"SET\",\"a\",1]]' | tambour state apply --state /tmp/s.json\n\n\
    Operations are the events that `decode --extensions` prints, or a JSON array of arrays such as [\"SET\", path, value]: SET and PUSH take a value, ADD, SUB, MUL and DIV a number, \
    POP and DELETE nothing. Exit code 1: an operation was refused; the others were applied unless --atomic is given.")]
pub(crate) struct StateApplyCommand {
    /// JSON file with the state; it is not changed
    #[arg(long, value_name = "FILE")]
    state: PathBuf,
    /// Apply all operations or none
    #[arg(long)]
    atomic: bool,
    /// JSON Schema that the state must satisfy after each operation
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// JSON file with the operations; standard input if absent or `-`
    operations: Option<PathBuf>,
}

pub(crate) fn run(command: &StateCommandLine) -> Result<CommandOutcome> {
    let StateCommandLine::Apply(args) = command;
    let is_stdin = |path: Option<&Path>| path.is_none_or(|path| path == Path::new(input::STDIN));
    if is_stdin(Some(&args.state)) && is_stdin(args.operations.as_deref()) {
        bail!("standard input cannot be both the state and the operations");
    }
    let mut state = read_json(Some(&args.state))?;
    let schema = args
        .schema
        .as_deref()
        .map(|path| Schema::new(read_json(Some(path))?).with_context(|| input::display_name(Some(path))));
    let schema = schema.transpose()?;
    let path = args.operations.as_deref();
    let operations = read_operations(path).with_context(|| input::display_name(path))?;
    let options = ApplyOptions { is_atomic: args.atomic, schema: schema.as_ref(), ..ApplyOptions::default() };
    let results = apply(&mut state, &operations, &options);

    let mut stderr = io::stderr().lock();
    for (result, operation) in results.iter().zip(&operations) {
        let mut line = serde_json::to_value(result)?;
        let report = operation.report(Place::START, 0).filter(|_| operation.refusal().is_none());
        if let Some(finding) = report.map(|report| report.judge(Profile::Lenient)) {
            line["warning"] = json!({ "code": finding.code, "message": finding.message });
        }
        // Standard error may be closed; the state is still printed.
        let _ = writeln!(stderr, "{line}");
    }
    let mut stdout = io::stdout();
    writeln!(stdout, "{state}")?;
    stdout.flush()?;
    Ok(if results.iter().all(|result| result.ok) { CommandOutcome::Success } else { CommandOutcome::Failed })
}

/// Reads operations from a plain array, from the data of one `state_update` event, or from all `state_update`
/// events of a stream.
fn read_operations(path: Option<&Path>) -> Result<Vec<Operation>> {
    let bytes = input::read_without_bom(path)?;
    let text = std::str::from_utf8(&bytes).context("the operations are not UTF-8")?;
    let text = bound_numbers(text);
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let values: Vec<Value> =
        values.collect::<serde_json::Result<_>>().context("the operations are not JSON")?;
    let is_event_stream = values.len() > 1 || values.first().is_some_and(|value| value["event"].is_string());
    let mut all_operations = Vec::new();
    for mut value in values {
        if is_event_stream {
            if value["event"] != "state_update" {
                continue;
            }
            value = value["data"].take();
        }
        let list = match value {
            Value::Object(mut update) => update.remove("operations").unwrap_or(Value::Object(update)),
            other => other,
        };
        let mut operations = Operation::parse_list(&list)?;
        // An operation of an event is stored as an object, with the reason if it was refused.
        for (operation, stored) in operations.iter_mut().zip(list.as_array().into_iter().flatten()) {
            if let (Some(op), Some(path)) = (stored["op"].as_str(), stored["path"].as_str()) {
                *operation =
                    Operation::from_stored(op.to_owned(), path.to_owned(), stored.get("value").cloned());
                if let Some(reason) = stored["refused"].as_str() {
                    // The code of the original reason is not stored, only its text. Any code keeps the
                    // operation from being applied.
                    *operation = operation
                        .clone()
                        .refuse(RefusalReason::ValueGuessed, format!("refused before: {reason}"));
                }
            }
        }
        all_operations.extend(operations);
    }
    Ok(all_operations)
}

fn read_json(path: Option<&Path>) -> Result<Value> {
    serde_json::from_slice(&input::read_without_bom(path)?)
        .with_context(|| format!("{} is not JSON", input::display_name(path)))
}
