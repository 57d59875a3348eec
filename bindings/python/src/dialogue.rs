//! Classes `Script`, `Dialogue` and `ReplyReader`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tambour::event::Failure;
use tambour::{Event, Profile};
use tambour_bindings::dialogue::{CallReader, DialogueRun, DialogueStep, LoadedScript, RunSettings};
use tambour_bindings::input_end::{failed_end, parse_end};

use crate::chunk::{LossyText, to_text};
use crate::classes::Classes;
use crate::error::ResultExt;
use crate::functions::read_language;
use crate::pipeline::read_options;
use crate::values::{read_map, read_value, write_value};

/// A dialogue script that can run, with the templates of its prompts.
///
/// `templates` are texts by their path below the folder of templates; the shipped ones need not be given. A
/// script that cannot run raises `ScriptError`, which lists all its problems.
///
/// >>> from tambour import Script
/// >>> script = Script('''
/// ... sessions:
/// ...   - session: hello
/// ...     phases: [{phase: p, steps: [{topic: t, actions: [{type: ai_say, content: Hello., max_rounds: 1}]}]}]
/// ... ''', language="en")
/// >>> script.sessions, script.action_count
/// (['hello'], 1)
#[pyclass(module = "tambour", frozen)]
pub(crate) struct Script {
    script: LoadedScript,
}

#[pymethods]
impl Script {
    #[new]
    #[pyo3(signature = (text, *, templates=None, language="zh"))]
    fn new(
        text: &Bound<'_, PyAny>,
        templates: Option<BTreeMap<String, String>>,
        language: &str,
    ) -> PyResult<Script> {
        let py = text.py();
        let text = to_text(text)?;
        let language = read_language(py, language)?;
        let templates = templates.unwrap_or_default();
        let loaded = py.detach(|| LoadedScript::load(&text, templates, language)).or_raise(py)?;
        match loaded {
            Ok(script) => Ok(Script { script }),
            Err(problems) => {
                let problems = Classes::get(py)?.write_records(py, "ScriptProblem", &problems)?;
                let class = py.import("tambour._errors")?.getattr("ScriptError")?;
                Err(PyErr::from_value(class.call1((problems,))?))
            }
        }
    }

    /// Warnings about the script, in source order.
    #[getter]
    fn problems<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Classes::get(py)?.write_records(py, "ScriptProblem", &self.script.problems)
    }

    /// Names of the sessions.
    #[getter]
    fn sessions(&self) -> Vec<String> {
        self.script.sessions()
    }

    /// Number of actions of all sessions.
    #[getter]
    fn action_count(&self) -> usize {
        self.script.action_count()
    }
}

/// One run of a session of a script, without I/O: `next` says what to do, and its result is passed back.
///
/// `now` is the time in milliseconds since 1970, for prompts that show it.
///
/// >>> from tambour import Dialogue, ModelCall, Script
/// >>> script = Script('''
/// ... sessions:
/// ...   - session: hello
/// ...     phases: [{phase: p, steps: [{topic: t, actions: [
/// ...       {type: ai_say, content: Hello., max_rounds: 1, require_acknowledgment: false}]}]}]
/// ... ''', language="en")
/// >>> dialogue = Dialogue(script, ai_say_role="Coach")
/// >>> dialogue.input()
/// >>> isinstance(dialogue.next(), ModelCall)
/// True
/// >>> effect = dialogue.reply('{"response": {"Coach": "Hi!"}}')
/// >>> dialogue.next(), dialogue.turn.ai_message
/// (Finished(), 'Hi!')
#[pyclass(module = "tambour")]
pub(crate) struct Dialogue {
    run: DialogueRun,
}

#[pymethods]
impl Dialogue {
    #[new]
    #[pyo3(signature = (script, session=None, variables=None, *, history=None, max_reasks=None, temperature=None, max_tokens=None, saved=None, **options))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        script: &Script,
        session: Option<&str>,
        variables: Option<&Bound<'_, PyDict>>,
        history: Option<usize>,
        max_reasks: Option<u32>,
        temperature: Option<f64>,
        max_tokens: Option<u32>,
        saved: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Dialogue> {
        let options = read_options(py, options, Profile::Lenient)?;
        let settings = RunSettings { history, max_reasks, temperature, max_tokens };
        let script = script.script.clone();
        let run = match saved {
            Some(saved) => DialogueRun::restore(script, read_value(saved)?, settings, options),
            None => DialogueRun::start(script, session, read_map(variables)?, settings, options),
        };
        Ok(Dialogue { run: run.or_raise(py)? })
    }

    /// Returns the dialogue as a JSON-like value. `Dialogue(script, saved=...)` continues it.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        write_value(py, &self.run.save())
    }

    /// Takes an input of the user; without text, the model speaks on.
    #[pyo3(signature = (text=None, *, now=0))]
    #[expect(clippy::needless_pass_by_value, reason = "an argument of Python")]
    fn input(&mut self, py: Python<'_>, text: Option<LossyText>, now: i64) -> PyResult<()> {
        self.run.input(text.as_ref().map(|text| text.0.as_str()), now).or_raise(py)
    }

    /// Takes the client's answer to a `Form`, `Picture` or `Skill` event.
    #[pyo3(signature = (call_id, value, *, now=0))]
    fn answer(&mut self, call_id: &str, value: &Bound<'_, PyAny>, now: i64) -> PyResult<()> {
        self.run.answer(call_id, read_value(value)?, now).or_raise(value.py())
    }

    /// Returns what to do: a `ModelCall`, an event for the client, `AwaitUser`, `AwaitAnswer` or `Finished`.
    /// Repeated calls return the same, except that an event comes only once.
    #[pyo3(signature = (*, now=0))]
    fn next<'py>(&mut self, py: Python<'py>, now: i64) -> PyResult<Bound<'py, PyAny>> {
        let classes = Classes::get(py)?;
        match self.run.step(now) {
            DialogueStep::Call(call) => classes.write_record(py, "ModelCall", &call),
            DialogueStep::Event(event) => classes.write_event(py, &event),
            DialogueStep::User(wait) => classes.write_record(py, "AwaitUser", &wait),
            DialogueStep::Answer(wait) => classes.write_record(py, "AwaitAnswer", &wait),
            DialogueStep::Finished(end) => classes.write_record(py, "Finished", &end),
        }
    }

    /// Takes the whole reply to the pending call; returns its effect.
    #[pyo3(signature = (text, *, finish="stop", reasoning=LossyText(String::new())), text_signature = "($self, text, *, finish='stop', reasoning='')")]
    #[expect(clippy::needless_pass_by_value, reason = "an argument of Python")]
    fn reply<'py>(
        &mut self,
        text: &Bound<'py, PyAny>,
        finish: Option<&str>,
        reasoning: LossyText,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = text.py();
        let end = parse_end(finish, false).or_raise(py)?;
        let mut reader = self.run.reader().or_raise(py)?;
        let text = to_text(text)?;
        reader.push_reasoning(&reasoning.0);
        reader.push_whole(&text);
        reader.finish(&end);
        let effect = self.run.accept(&mut reader).or_raise(py)?;
        Classes::get(py)?.write_record(py, "ReplyEffect", &effect)
    }

    /// Creates a reader of the reply to the pending call, for a reply that streams.
    fn reader(&self, py: Python<'_>) -> PyResult<ReplyReader> {
        Ok(ReplyReader { reader: Mutex::new(self.run.reader().or_raise(py)?) })
    }

    /// Takes the reply that a reader has read to its end; returns its effect.
    fn accept<'py>(
        &mut self,
        py: Python<'py>,
        mut reader: PyRefMut<'py, ReplyReader>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let effect = self.run.accept(reader.reader()).or_raise(py)?;
        Classes::get(py)?.write_record(py, "ReplyEffect", &effect)
    }

    /// Records that the pending call failed; the next input repeats it.
    #[pyo3(signature = (message, *, code=LossyText("upstream_failed".to_owned()), retryable=true), text_signature = "($self, message, *, code='upstream_failed', retryable=True)")]
    fn fail(&mut self, py: Python<'_>, message: LossyText, code: LossyText, retryable: bool) -> PyResult<()> {
        self.run.fail(Failure::new(code.0, message.0, retryable)).or_raise(py)
    }

    /// Outcome of the last input.
    #[getter]
    fn turn<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Classes::get(py)?.write_record(py, "Turn", &self.run.turn())
    }

    /// All visible variables.
    #[getter]
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        write_value(py, &self.run.variables().into())
    }

    /// Messages so far, in order.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        Classes::get(py)?.write_records(py, "PromptMessage", &self.run.history())
    }
}

/// Reader of the reply to a call of a dialogue. Made by `Dialogue.reader`.
#[pyclass(module = "tambour")]
pub(crate) struct ReplyReader {
    /// Only reached through `&mut`, so it is never locked.
    reader: Mutex<CallReader>,
}

#[pymethods]
impl ReplyReader {
    /// Reads the next text of the reply; returns the events.
    #[expect(clippy::needless_pass_by_value, reason = "an argument of Python")]
    fn push<'py>(&mut self, py: Python<'py>, text: LossyText) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let events = self.reader().push(&text.0);
        write_events(py, &events)
    }

    /// Reads reasoning that the service sent apart from the reply.
    #[expect(clippy::needless_pass_by_value, reason = "an argument of Python")]
    fn push_reasoning<'py>(&mut self, py: Python<'py>, text: LossyText) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let events = self.reader().push_reasoning(&text.0);
        write_events(py, &events)
    }

    /// Ends the reply; returns the last events. `Dialogue.accept` takes the reply then.
    #[pyo3(signature = (reason="stop", *, incomplete=false))]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        reason: Option<&str>,
        incomplete: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let end = parse_end(reason, incomplete).or_raise(py)?;
        let (events, _) = self.reader().finish(&end);
        write_events(py, &events)
    }

    /// Ends a reply that broke off.
    #[pyo3(signature = (message, *, code=LossyText("upstream_failed".to_owned()), retryable=true), text_signature = "($self, message, *, code='upstream_failed', retryable=True)")]
    fn fail<'py>(
        &mut self,
        py: Python<'py>,
        message: LossyText,
        code: LossyText,
        retryable: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let end = failed_end(code.0, message.0, retryable);
        let (events, _) = self.reader().finish(&end);
        write_events(py, &events)
    }
}

impl ReplyReader {
    fn reader(&mut self) -> &mut CallReader {
        self.reader.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_events<'py>(py: Python<'py>, events: &[Event<'_>]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let classes = Classes::get(py)?;
    events.iter().map(|event| classes.write_event(py, event)).collect()
}
