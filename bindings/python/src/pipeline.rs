//! Class `Pipeline`.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tambour::event::Extension;
use tambour::{Options, Profile};
use tambour_bindings::input_end::{failed_end, parse_end};
use tambour_bindings::options::build_options;
use tambour_bindings::replies::{next_reply, outcome};

use crate::chunk::{LossyText, with_chunk};
use crate::classes::Classes;
use crate::error::{ResultExt, state_error};
use crate::sink::{Input, PipelineReader};
use crate::state::State;
use crate::values::{read_map, read_value};

/// A reply in progress, with its attached state.
pub(crate) struct Reading {
    /// Only reached through `&mut`, so it is never locked; a pipeline is not `Sync`.
    reader: Mutex<PipelineReader>,
    state: Option<Py<State>>,
}

/// Events of an input, and the exception of a state that could not take the updates of the reply.
pub(crate) type FedEvents<'py> = (Vec<Bound<'py, PyAny>>, Option<PyErr>);

/// Arguments of a reading besides its options.
pub(crate) struct ReadingArguments<'a, 'py> {
    pub(crate) dialect: &'a str,
    pub(crate) sends_extensions: bool,
    pub(crate) sends_findings: bool,
    pub(crate) state: Option<Py<State>>,
    pub(crate) message: &'a str,
    pub(crate) options: Option<&'a Bound<'py, PyDict>>,
}

impl Reading {
    pub(crate) fn new(py: Python<'_>, arguments: ReadingArguments<'_, '_>) -> PyResult<Reading> {
        let ReadingArguments { dialect, sends_extensions, sends_findings, state, message, options } =
            arguments;
        let options = read_options(py, options, Profile::Lenient)?;
        let options = attach_state(py, options, state.as_ref(), message)?;
        let pipeline = tambour::Pipeline::new(dialect, &options).or_raise(py)?;
        let pipeline = pipeline.with_extensions(sends_extensions).with_findings(sends_findings);
        Ok(Reading { reader: Mutex::new(PipelineReader { pipeline, findings: Vec::new() }), state })
    }

    pub(crate) fn reader(&mut self) -> &mut PipelineReader {
        self.reader.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes an input to the pipeline. At the end of the reply the attached state takes its updates over;
    /// if it cannot, the exception has the events.
    pub(crate) fn feed<'py>(
        &mut self,
        py: Python<'py>,
        input: Input<'_>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (events, error) = self.feed_whole(py, input)?;
        match error {
            Some(error) => {
                error.value(py).setattr("events", events)?;
                Err(error)
            }
            None => Ok(events),
        }
    }

    /// Like [`Reading::feed`], but with the exception of the state beside the events.
    pub(crate) fn feed_whole<'py>(&mut self, py: Python<'py>, input: Input<'_>) -> PyResult<FedEvents<'py>> {
        let events = self.reader().feed(py, input)?;
        let error = matches!(input, Input::Finish(_)).then(|| self.update_state(py)).and_then(Result::err);
        Ok((events, error))
    }

    /// Passes the updates of the reply to the attached state, which is let go then. A state that cannot take
    /// them stays attached, so that another end of the reply tries again.
    fn update_state(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(state) = &self.state else { return Ok(()) };
        let state = state.clone_ref(py);
        let updates = &self.reader().pipeline.outcome().applied_updates;
        let absorbed = match state.try_borrow_mut(py) {
            Ok(mut state) => state.absorb(updates).map_err(|error| error.to_string()),
            Err(_) => Err("the state is in use, so it does not take the updates of the reply".to_owned()),
        };
        absorbed.map_err(|message| state_error(py, &message))?;
        self.state = None;
        Ok(())
    }

    /// Findings so far.
    pub(crate) fn findings<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Classes::get(py)?.write_findings(py, &self.reader().findings)
    }

    /// Result of the reply so far.
    pub(crate) fn outcome<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let outcome = outcome(&self.reader().pipeline);
        Classes::get(py)?.write_record(py, "Outcome", &outcome)
    }

    /// Name of the dialect.
    pub(crate) fn dialect(&mut self) -> &'static str {
        self.reader().pipeline.dialect()
    }
}

/// Reads options by name.
pub(crate) fn read_options(
    py: Python<'_>,
    options: Option<&Bound<'_, PyDict>>,
    default_profile: Profile,
) -> PyResult<Options> {
    build_options(&read_map(options)?, default_profile).or_raise(py)
}

fn attach_state(
    py: Python<'_>,
    mut options: Options,
    state: Option<&Py<State>>,
    message: &str,
) -> PyResult<Options> {
    if let Some(state) = state {
        options.state = Some(state.try_borrow(py)?.attach(message));
    }
    Ok(options)
}

/// Reader of one reply: chunks in, events out.
///
/// `dialect` is how the model writes (`auto` finds out), `state` a `State` that operations of the reply are
/// applied to, with `message` as the id of the reply in its history. Further arguments are options by their
/// public names, with `_` for the dot: `plain_reasoning="open"`.
///
/// A pipeline serves one thread at a time.
///
/// >>> from tambour import Pipeline
/// >>> pipeline = Pipeline("plain")
/// >>> pipeline.push("<think>2 + 2</think>It is 4.")[-1]
/// FinalDelta(text='It is 4.')
/// >>> [event.event for event in pipeline.finish()]
/// ['final_end', 'completed']
/// >>> pipeline.outcome.metadata.truncated
/// False
#[pyclass(module = "tambour")]
pub(crate) struct Pipeline {
    reading: Reading,
}

#[pymethods]
impl Pipeline {
    #[new]
    #[pyo3(signature = (dialect="auto", *, extensions=true, findings=false, state=None, message="", **options))]
    fn new(
        py: Python<'_>,
        dialect: &str,
        extensions: bool,
        findings: bool,
        state: Option<Py<State>>,
        message: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pipeline> {
        let reading = Reading::new(
            py,
            ReadingArguments {
                dialect,
                sends_extensions: extensions,
                sends_findings: findings,
                state,
                message,
                options,
            },
        )?;
        Ok(Pipeline { reading })
    }

    /// Reads the next chunk, `str` or bytes, cut anywhere; returns the events. Nothing happens after the end.
    fn push<'py>(&mut self, py: Python<'py>, chunk: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        with_chunk(chunk, |chunk| self.reading.feed(py, Input::Chunk(chunk)))?
    }

    /// Reads reasoning that the service sent apart from the reply.
    #[expect(clippy::needless_pass_by_value, reason = "an argument of Python")]
    fn push_reasoning<'py>(&mut self, py: Python<'py>, text: LossyText) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.reading.feed(py, Input::Reasoning(&text.0))
    }

    /// Takes a complete call that the service sent apart from the reply, with its arguments as JSON text. At
    /// the end of the reply it becomes a `tool_call`, if it fits a tool of the option `tools`.
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
    fn push_call<'py>(
        &mut self,
        py: Python<'py>,
        name: LossyText,
        arguments: LossyText,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.reading.feed(py, Input::Call { name: &name.0, arguments: &arguments.0 })
    }

    /// Ends the reply: `stop`, `length`, `content_filter`, `tool_calls`, `cancelled`, or `None` if the service
    /// gave no reason, after which the reply counts as truncated. `incomplete` says that part of it was lost.
    #[pyo3(signature = (reason="stop", *, incomplete=false))]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        reason: Option<&str>,
        incomplete: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let end = parse_end(reason, incomplete).or_raise(py)?;
        self.reading.feed(py, Input::Finish(&end))
    }

    /// Ends a reply that broke off; the last event is a `Failure`.
    #[pyo3(signature = (message, *, code=LossyText("upstream_failed".to_owned()), retryable=true), text_signature = "($self, message, *, code='upstream_failed', retryable=True)")]
    fn fail<'py>(
        &mut self,
        py: Python<'py>,
        message: LossyText,
        code: LossyText,
        retryable: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let end = failed_end(code.0, message.0, retryable);
        self.reading.feed(py, Input::Finish(&end))
    }

    /// Ends a stream that `finish` left open for the results of calls (option `tool_loop`), when no further
    /// reply follows. Otherwise does nothing.
    #[pyo3(signature = (reason="stop"))]
    fn abandon<'py>(&mut self, py: Python<'py>, reason: Option<&str>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let end = parse_end(reason, false).or_raise(py)?;
        self.reading.feed(py, Input::Abandon(&end))
    }

    /// Puts an event into the stream that does not come from the reply, such as a `ToolResult`. Returns the
    /// events; it cannot break their order.
    fn insert<'py>(
        &mut self,
        py: Python<'py>,
        event: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let value = read_value(&event.call_method0("to_dict")?)?;
        let name = value["event"].as_str().unwrap_or_default();
        let Some(extension) = Extension::parse(name, &value["data"]) else {
            let message = "only extension events can be inserted, such as ToolResult";
            return Err(PyValueError::new_err(message));
        };
        let mut collector = tambour::event::EventCollector::default();
        self.reading.reader().pipeline.insert(extension, &mut collector);
        let classes = Classes::get(py)?;
        collector.events.iter().map(|event| classes.write_event(py, event)).collect()
    }

    /// Creates the pipeline of the next reply of a tool loop, which continues the same stream.
    #[pyo3(signature = (dialect="auto", **options))]
    fn next_reply(
        &mut self,
        py: Python<'_>,
        dialect: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Pipeline> {
        let options = read_options(py, options, Profile::Lenient)?;
        let pipeline = next_reply(&self.reading.reader().pipeline, dialect, &options).or_raise(py)?;
        let reader = Mutex::new(PipelineReader { pipeline, findings: Vec::new() });
        Ok(Pipeline { reading: Reading { reader, state: None } })
    }

    /// Sets the token counts for `completed.usage`: any JSON value.
    fn set_usage(&mut self, usage: &Bound<'_, PyAny>) -> PyResult<()> {
        let usage = read_value(usage)?;
        self.reading.reader().pipeline.set_usage(usage);
        Ok(())
    }

    /// Findings so far, in order.
    #[getter]
    fn findings<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.reading.findings(py)
    }

    /// Calls, notices, decisions and updates of the reply so far.
    #[getter]
    fn outcome<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.reading.outcome(py)
    }

    /// Calls whose results a tool loop waits for, after `finish`.
    #[getter]
    fn pending_calls<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let calls = self.reading.reader().pipeline.pending_calls();
        Classes::get(py)?.write_records(py, "ToolCall", calls)
    }

    /// Name of the dialect; `auto` until it is detected.
    #[getter]
    fn dialect(&mut self) -> &'static str {
        self.reading.dialect()
    }

    /// Number of bytes held back until what follows decides what they are.
    #[getter]
    fn held_bytes(&mut self) -> usize {
        self.reading.reader().pipeline.held_bytes()
    }
}
