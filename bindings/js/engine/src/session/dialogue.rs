//! Scripts and the dialogues they describe.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::error::Result;
use tambour::event::Failure;
use tambour::{Event, Finding, InputEnd, Profile};
use tambour_bindings::dialogue::{CallReader, DialogueRun, DialogueStep, LoadedScript, RunSettings};
use tambour_bindings::options::build_options;
use tambour_bindings::records::ScriptProblem;

use super::pipeline::{FailArguments, FinishArguments};
use super::{Chunk, lock, unknown_method};
use crate::answer::{read_arguments, read_text, write, write_events};
use crate::prompts::read_language;

/// A script that can run.
pub(super) struct ScriptSession(LoadedScript);

/// A run of a script, with the reader that it gave out last.
pub(super) struct DialogueSession {
    run: DialogueRun,
    reader: Option<Arc<Mutex<CallReader>>>,
}

/// Reader of the reply to a call.
pub(super) struct ReplySession(Arc<Mutex<CallReader>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptArguments {
    text: String,
    templates: BTreeMap<String, String>,
    language: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    session: Option<String>,
    variables: Map<String, Value>,
    history: Option<usize>,
    max_reasks: Option<u32>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    saved: Option<Value>,
    options: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputArguments {
    text: Option<String>,
    now: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerArguments {
    call_id: String,
    value: Value,
    now: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyArguments {
    text: String,
    reasoning: String,
    end: FinishArguments,
}

impl ScriptSession {
    /// Loads a script. The inner error is the JSON text of an error with the `problems` of a script that cannot
    /// run.
    pub(super) fn open(arguments: &str) -> Result<std::result::Result<ScriptSession, String>> {
        let ScriptArguments { text, templates, language } = read_arguments(arguments)?;
        let loaded = LoadedScript::load(&text, templates, read_language(&language)?)?;
        Ok(loaded.map(ScriptSession).map_err(|problems| {
            let error = problems.iter().find(|problem| problem.finding.severity == tambour::Severity::Error);
            let message = error.map_or_else(String::new, |problem: &ScriptProblem| {
                format!("the script cannot run: {}", problem.finding.message)
            });
            json!({ "message": message, "code": "script_invalid", "problems": problems }).to_string()
        }))
    }

    pub(super) fn start(&self, arguments: &str) -> Result<DialogueSession> {
        let arguments: StartArguments = read_arguments(arguments)?;
        let options = build_options(&arguments.options, Profile::Lenient)?;
        let settings = RunSettings {
            history: arguments.history,
            max_reasks: arguments.max_reasks,
            temperature: arguments.temperature,
            max_tokens: arguments.max_tokens,
        };
        let script = self.0.clone();
        let run = match arguments.saved {
            Some(saved) => DialogueRun::restore(script, saved, settings, options),
            None => DialogueRun::start(
                script,
                arguments.session.as_deref(),
                arguments.variables,
                settings,
                options,
            ),
        };
        Ok(DialogueSession { run: run?, reader: None })
    }

    pub(super) fn call(&self, method: &str) -> Result<String> {
        match method {
            "problems" => write(&self.0.problems),
            "sessions" => write(&self.0.sessions()),
            "action_count" => write(&self.0.action_count()),
            _ => Err(unknown_method(method)),
        }
    }
}

impl DialogueSession {
    /// Reader of the reply to the pending call. An earlier reader cannot be accepted any more.
    pub(super) fn reader(&mut self) -> Result<ReplySession> {
        let reader = Arc::new(Mutex::new(self.run.reader()?));
        self.reader = Some(Arc::clone(&reader));
        Ok(ReplySession(reader))
    }

    pub(super) fn call(&mut self, method: &str, arguments: &str) -> Result<String> {
        let run = &mut self.run;
        match method {
            "save" => write(&run.save()),
            "input" => {
                let InputArguments { text, now } = read_arguments(arguments)?;
                run.input(text.as_deref(), now)?;
                Ok(String::new())
            }
            "answer" => {
                let AnswerArguments { call_id, value, now } = read_arguments(arguments)?;
                run.answer(&call_id, value, now)?;
                Ok(String::new())
            }
            "next" => write_step(run.step(read_arguments(arguments)?)),
            "reply" => {
                let ReplyArguments { text, reasoning, end } = read_arguments(arguments)?;
                let end = end.end()?;
                let mut reader = run.reader()?;
                reader.push_reasoning(&reasoning);
                reader.push_whole(&text);
                reader.finish(&end);
                write(&run.accept(&mut reader)?)
            }
            "accept" => match &self.reader {
                Some(reader) => write(&run.accept(&mut lock(reader))?),
                None => Err(tambour::Error::invalid("no reader was made for the pending call")),
            },
            "fail" => {
                let FailArguments { message, code, retryable } = read_arguments(arguments)?;
                run.fail(Failure::new(code, message, retryable))?;
                Ok(String::new())
            }
            "turn" => write(&run.turn()),
            "variables" => write(&run.variables()),
            "history" => write(&run.history()),
            _ => Err(unknown_method(method)),
        }
    }
}

/// Writes what a dialogue asks its caller for: an object with `type` and the fields of that type.
fn write_step(step: DialogueStep) -> Result<String> {
    let (kind, value) = match step {
        DialogueStep::Call(call) => ("call", serde_json::to_value(call)),
        DialogueStep::Event(event) => ("event", Ok(json!({ "event": event.name(), "data": event.data() }))),
        DialogueStep::User(wait) => ("await_user", serde_json::to_value(wait)),
        DialogueStep::Answer(wait) => ("await_answer", serde_json::to_value(wait)),
        DialogueStep::Finished(end) => ("finished", serde_json::to_value(end)),
    };
    let value = value.map_err(|error| tambour::Error::invalid(error.to_string()))?;
    write(&json!([kind, value]))
}

impl ReplySession {
    pub(super) fn push(&self, chunk: Chunk<'_>) -> Result<String> {
        let mut reader = lock(&self.0);
        write_events(&match chunk {
            Chunk::Text(text) => reader.push(text),
            Chunk::Bytes(bytes) => reader.push(&read_text(bytes)),
        })
    }

    pub(super) fn call(&self, method: &str, arguments: &str) -> Result<String> {
        let mut reader = lock(&self.0);
        match method {
            "push_reasoning" => write_events(&reader.push_reasoning(&read_arguments::<String>(arguments)?)),
            "finish" => write_end(reader.finish(&read_arguments::<FinishArguments>(arguments)?.end()?)),
            "fail" => {
                let end: InputEnd = read_arguments::<FailArguments>(arguments)?.end();
                write_end(reader.finish(&end))
            }
            _ => Err(unknown_method(method)),
        }
    }
}

/// Writes the last events of a reply.
fn write_end((events, _): (Vec<Event<'static>>, Vec<Finding>)) -> Result<String> {
    write_events(&events)
}
