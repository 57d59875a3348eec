//! A reply in progress.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::error::{Error, Result};
use tambour::event::{EventCollector, Extension, Sink};
use tambour::{Event, Finding, InputEnd, Pipeline, Profile};
use tambour_bindings::input_end::{failed_end, parse_end};
use tambour_bindings::options::build_options;
use tambour_bindings::replies::{next_reply, outcome};

use super::{Chunk, SharedState, lock, unknown_method};
use crate::answer::{describe_error, read_arguments, write, write_events};

/// Pipeline with its findings and the state that its updates go to.
pub(super) struct PipelineSession {
    pipeline: Pipeline,
    findings: Vec<Finding>,
    /// Attached state; let go at the end of the reply, when it has taken the updates.
    state: Option<SharedState>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenArguments {
    dialect: String,
    extensions: bool,
    findings: bool,
    message: String,
    options: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NextArguments {
    dialect: String,
    options: Map<String, Value>,
}

/// End of a reply with its reason.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FinishArguments {
    reason: Option<String>,
    incomplete: bool,
}

/// End of a reply that broke off.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailArguments {
    pub(super) message: String,
    pub(super) code: String,
    pub(super) retryable: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallArguments {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventArguments {
    event: String,
    data: Value,
}

impl FinishArguments {
    pub(super) fn end(&self) -> Result<InputEnd> {
        parse_end(self.reason.as_deref(), self.incomplete)
    }
}

impl FailArguments {
    pub(super) fn end(self) -> InputEnd {
        failed_end(self.code, self.message, self.retryable)
    }
}

impl PipelineSession {
    pub(super) fn open(arguments: &str, state: Option<SharedState>) -> Result<PipelineSession> {
        let arguments: OpenArguments = read_arguments(arguments)?;
        let mut options = build_options(&arguments.options, Profile::Lenient)?;
        if let Some(state) = &state {
            options.state = Some(lock(state).attach(&arguments.message));
        }
        let pipeline = Pipeline::new(&arguments.dialect, &options)?
            .with_extensions(arguments.extensions)
            .with_findings(arguments.findings);
        Ok(PipelineSession { pipeline, findings: Vec::new(), state })
    }

    /// Pipeline of the next reply of a tool loop, which continues the same stream.
    pub(super) fn next_reply(&mut self, arguments: &str) -> Result<PipelineSession> {
        let arguments: NextArguments = read_arguments(arguments)?;
        let options = build_options(&arguments.options, Profile::Lenient)?;
        let pipeline = next_reply(&self.pipeline, &arguments.dialect, &options)?;
        Ok(PipelineSession { pipeline, findings: Vec::new(), state: None })
    }

    pub(super) fn push(&mut self, chunk: Chunk<'_>) -> Result<String> {
        self.feed(|pipeline, sink| match chunk {
            Chunk::Text(text) => pipeline.push_str(text, sink),
            Chunk::Bytes(bytes) => pipeline.push(bytes, sink),
        })
    }

    pub(super) fn call(&mut self, method: &str, arguments: &str) -> Result<String> {
        match method {
            "push_reasoning" => {
                let text: String = read_arguments(arguments)?;
                self.feed(|pipeline, sink| pipeline.push_reasoning(&text, sink))
            }
            "push_call" => {
                let call: CallArguments = read_arguments(arguments)?;
                self.feed(|pipeline, sink| pipeline.push_call(&call.name, &call.arguments, sink))
            }
            "finish" => self.finish(&read_arguments::<FinishArguments>(arguments)?.end()?),
            "fail" => self.finish(&read_arguments::<FailArguments>(arguments)?.end()),
            "abandon" => {
                let end = read_arguments::<FinishArguments>(arguments)?.end()?;
                self.feed(|pipeline, sink| pipeline.abandon(&end, sink))
            }
            "insert" => {
                let event: EventArguments = read_arguments(arguments)?;
                let Some(extension) = Extension::parse(&event.event, &event.data) else {
                    return Err(Error::invalid(
                        "only extension events can be inserted, such as `tool_result` with its data",
                    ));
                };
                self.feed(|pipeline, sink| pipeline.insert(extension, sink))
            }
            "set_usage" => {
                self.pipeline.set_usage(read_arguments(arguments)?);
                Ok(String::new())
            }
            "findings" => write(&self.findings),
            "outcome" => write(&outcome(&self.pipeline)),
            "pending_calls" => write(&self.pipeline.pending_calls()),
            "dialect" => write(&self.pipeline.dialect()),
            "held_bytes" => write(&self.pipeline.held_bytes()),
            _ => Err(unknown_method(method)),
        }
    }

    fn feed(&mut self, input: impl FnOnce(&mut Pipeline, &mut dyn Sink)) -> Result<String> {
        write_events(&self.read(input))
    }

    fn read(&mut self, input: impl FnOnce(&mut Pipeline, &mut dyn Sink)) -> Vec<Event<'static>> {
        let mut collector = EventCollector::default();
        input(&mut self.pipeline, &mut collector);
        self.findings.append(&mut collector.findings);
        collector.events
    }

    /// Writes an object with the `events`, and the `error` of a state that could not take the updates of the
    /// reply; it stays attached, so that another end of the reply tries again.
    fn finish(&mut self, end: &InputEnd) -> Result<String> {
        let events = self.read(|pipeline, sink| pipeline.finish(end, sink));
        let mut error = None;
        if let Some(state) = &self.state {
            let state = Arc::clone(state);
            match lock(&state).absorb(&self.pipeline.outcome().applied_updates) {
                Ok(()) => self.state = None,
                Err(refusal) => error = Some(describe_error(&refusal)),
            }
        }
        let events = write_events(&events)?;
        let events = if events.is_empty() { "[]" } else { &events };
        Ok(match error {
            None => format!("{{\"events\":{events}}}"),
            Some(error) => format!("{{\"events\":{events},\"error\":{}}}", json!(error)),
        })
    }
}
