//! Scripts and the dialogues they describe, without I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use tambour::error::{Error, Result};
use tambour::event::{Event, EventCollector, Failure};
use tambour::limits::Limits;
use tambour::options::Texts;
use tambour::texts::Language;
use tambour::{Finding, InputEnd, Options};
use tambour_prompt::dialogue::check::check_all;
use tambour_prompt::dialogue::{
    self as machine, Dialogue, DialogueEnv, DialogueRequest, DialogueSettings, ModelReply, ReplyReader,
};
use tambour_prompt::script::{self, Script, load_with_language};
use tambour_prompt::template::TemplateFiles;

use crate::records::{
    AwaitAnswer, AwaitUser, Finished, ModelCall, PromptMessage, ReplyEffect, ScriptProblem, Turn,
};

/// A script that can run, with its templates.
#[derive(Clone, Debug)]
pub struct LoadedScript {
    script: Arc<Script>,
    templates: Arc<TemplateFiles>,
    language: Language,
    /// Warnings, in source order.
    pub problems: Vec<ScriptProblem>,
}

impl LoadedScript {
    /// Loads a script and checks it with its templates, which are texts by their path below the folder of
    /// templates; shipped templates need not be given.
    ///
    /// # Errors
    /// The outer error is about the templates; the inner one lists all problems of a script that cannot run.
    pub fn load(
        text: &str,
        templates: BTreeMap<String, String>,
        language: Language,
    ) -> Result<std::result::Result<LoadedScript, Vec<ScriptProblem>>> {
        let templates = TemplateFiles::new(templates)?;
        let loaded = load_with_language(text, &Limits::default(), language);
        let script = loaded.script.clone();
        let problems = check_all(loaded, &templates, language);
        let is_broken = problems.iter().any(script::ScriptProblem::is_error);
        let problems: Vec<ScriptProblem> = problems
            .iter()
            .map(|problem| ScriptProblem { path: problem.path.clone(), finding: problem.finding() })
            .collect();
        Ok(match script.filter(|_| !is_broken) {
            Some(script) => Ok(LoadedScript {
                script: Arc::new(script),
                templates: Arc::new(templates),
                language,
                problems,
            }),
            None => Err(problems),
        })
    }

    /// Names of the sessions, in order.
    #[must_use]
    pub fn sessions(&self) -> Vec<String> {
        self.script.sessions.iter().map(|session| session.session.clone()).collect()
    }

    /// Number of actions of all sessions.
    #[must_use]
    pub fn action_count(&self) -> usize {
        self.script.actions().count()
    }
}

/// Request of a dialogue to its caller.
#[derive(Clone, Debug)]
pub enum DialogueStep {
    /// Call the model, and pass its reply to [`DialogueRun::accept`].
    Call(Box<ModelCall>),
    /// Pass this event to the client.
    Event(Box<Event<'static>>),
    /// Wait for the user.
    User(AwaitUser),
    /// Wait for the client.
    Answer(AwaitAnswer),
    /// The dialogue has ended.
    Finished(Finished),
}

/// A dialogue with its script and settings.
pub struct DialogueRun {
    script: LoadedScript,
    dialogue: Dialogue,
    settings: DialogueSettings,
    options: Options,
    /// Call that waits for its reply.
    call: Option<machine::ModelCall>,
    /// Time of the last input or request, in milliseconds since 1970.
    now: i64,
}

/// Settings of a dialogue; those that are `None` have the default of the library.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunSettings {
    /// Maximum number of history messages in a prompt.
    pub history: Option<usize>,
    /// Maximum number of times that a round asks the model again.
    pub max_reasks: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Token limit of a reply.
    pub max_tokens: Option<u32>,
}

/// Evaluates `$call` with the environment of a run and its dialogue.
macro_rules! with_env {
    ($run:expr, |$dialogue:ident, $env:ident| $call:expr) => {{
        let DialogueRun { script, dialogue: $dialogue, settings, now, .. } = $run;
        let $env = &DialogueEnv {
            script: &script.script,
            templates: &*script.templates,
            now: *now,
            settings,
            hooks: &(),
        };
        $call
    }};
}

impl DialogueRun {
    /// Begins the session called `session`, or the first one if `None`. `options` are the reading options.
    ///
    /// # Errors
    /// The script has no such session.
    pub fn start(
        script: LoadedScript,
        session: Option<&str>,
        variables: Map<String, Value>,
        settings: RunSettings,
        options: Options,
    ) -> Result<DialogueRun> {
        let dialogue = Dialogue::start(&script.script, session, variables)?;
        Ok(DialogueRun::new(script, dialogue, settings, options))
    }

    /// Continues a dialogue that [`DialogueRun::save`] saved, with the script that it began with.
    ///
    /// # Errors
    /// The value is not a saved dialogue.
    pub fn restore(
        script: LoadedScript,
        saved: Value,
        settings: RunSettings,
        options: Options,
    ) -> Result<DialogueRun> {
        let dialogue = serde_json::from_value(saved)
            .map_err(|error| Error::invalid(format!("not a saved dialogue: {error}")))?;
        Ok(DialogueRun::new(script, dialogue, settings, options))
    }

    fn new(script: LoadedScript, dialogue: Dialogue, settings: RunSettings, options: Options) -> DialogueRun {
        let mut all_settings = DialogueSettings::default();
        all_settings.texts = Texts::from_language(script.language);
        all_settings.history = settings.history.unwrap_or(all_settings.history);
        all_settings.max_reasks = settings.max_reasks.unwrap_or(all_settings.max_reasks);
        all_settings.temperature = settings.temperature.unwrap_or(all_settings.temperature);
        all_settings.max_tokens = settings.max_tokens.unwrap_or(all_settings.max_tokens);
        DialogueRun { script, dialogue, settings: all_settings, options, call: None, now: 0 }
    }

    /// Returns the dialogue as a value that [`DialogueRun::restore`] reads.
    #[must_use]
    pub fn save(&self) -> Value {
        serde_json::to_value(&self.dialogue).unwrap_or_default()
    }

    /// Takes an input of the user, with or without text.
    ///
    /// # Errors
    /// The client has to answer a request first.
    pub fn input(&mut self, text: Option<&str>, now: i64) -> Result<()> {
        self.now = now;
        self.call = None;
        with_env!(self, |dialogue, env| dialogue.input(text, env)).map_err(|refusal| {
            Error::invalid("the client has to answer a request before the user continues")
                .with_code(refusal.code())
        })
    }

    /// Takes the client's answer to a request.
    ///
    /// # Errors
    /// No request with this id is pending.
    pub fn answer(&mut self, call_id: &str, value: Value, now: i64) -> Result<()> {
        self.now = now;
        self.call = None;
        with_env!(self, |dialogue, env| dialogue.answer(call_id, value, env)).map_err(|refusal| {
            Error::invalid(format!("no request `{call_id}` waits for an answer")).with_code(refusal.code())
        })
    }

    /// Returns the current request. Repeated calls return the same one, except that an event is returned only
    /// once.
    pub fn step(&mut self, now: i64) -> DialogueStep {
        self.now = now;
        let request = with_env!(self, |dialogue, env| dialogue.next(env));
        match request {
            DialogueRequest::Call(call) => {
                let record = self.describe_call(&call);
                self.call = Some(*call);
                DialogueStep::Call(Box::new(record))
            }
            DialogueRequest::Event(extension) => DialogueStep::Event(Box::new(Event::Extension(extension))),
            DialogueRequest::User { continues } => DialogueStep::User(AwaitUser { continues }),
            DialogueRequest::Answer { call_id } => DialogueStep::Answer(AwaitAnswer { call_id }),
            _ => DialogueStep::Finished(Finished {}),
        }
    }

    fn describe_call(&self, call: &machine::ModelCall) -> ModelCall {
        let messages = call.messages.iter();
        ModelCall {
            kind: call.kind.name().to_owned(),
            messages: messages
                .map(|message| PromptMessage { role: message.role.clone(), content: message.content.clone() })
                .collect(),
            temperature: call.temperature,
            max_tokens: call.max_tokens,
            round: call.round,
            max_rounds: call.max_rounds,
            attempt: call.attempt,
            path: call.path.clone(),
            template_id: call.template_id.clone(),
            schema: call.schema(&self.options),
            warnings: call.warnings.iter().map(|warning| warning.message.clone()).collect(),
        }
    }

    /// Creates a reader of the reply to the pending call.
    ///
    /// # Errors
    /// No call is pending.
    pub fn reader(&self) -> Result<CallReader> {
        let call = self.pending_call()?;
        Ok(CallReader { reader: Some(call.reader(&self.options)), is_delivered: false, result: None })
    }

    fn pending_call(&self) -> Result<&machine::ModelCall> {
        let call = self.call.as_ref();
        call.ok_or_else(|| Error::invalid("no call of a model is pending").with_code("no_call"))
    }

    /// Takes a reply that was read to its end.
    ///
    /// # Errors
    /// No call is pending, or the reply was not read to its end.
    pub fn accept(&mut self, reader: &mut CallReader) -> Result<ReplyEffect> {
        self.pending_call()?;
        let unfinished = || Error::invalid("the reply has not ended: call `finish` of its reader first");
        let result = reader.result.take().ok_or_else(unfinished)?;
        let Some(call) = self.call.take() else { return Ok(ReplyEffect::default()) };
        Ok(match result {
            Ok(reply) => {
                let effect = with_env!(self, |dialogue, env| dialogue.reply(&call, &reply, env));
                ReplyEffect {
                    asked_again: effect.asked_again,
                    failure: effect.failure,
                    exit_decision: effect.exit_decision,
                    assessment: effect.assessment,
                    assigned: effect.assigned,
                }
            }
            Err(failure) => {
                with_env!(self, |dialogue, env| dialogue.fail(failure.clone(), env));
                ReplyEffect { failure: Some(failure), ..ReplyEffect::default() }
            }
        })
    }

    /// Records that the pending call failed; the next input repeats it.
    ///
    /// # Errors
    /// No call is pending.
    pub fn fail(&mut self, failure: Failure) -> Result<()> {
        self.pending_call()?;
        self.call = None;
        with_env!(self, |dialogue, env| dialogue.fail(failure, env));
        Ok(())
    }

    /// Returns the outcome of the last input.
    #[must_use]
    pub fn turn(&self) -> Turn {
        let turn = self.dialogue.turn(&self.script.script);
        let to_value = |value: Option<Value>| value.filter(|value| !value.is_null());
        Turn {
            success: turn.success,
            completed: turn.completed,
            ai_message: turn.ai_message,
            status: serde_json::to_value(turn.status)
                .ok()
                .and_then(|status| status.as_str().map(str::to_owned))
                .unwrap_or_default(),
            position: to_value(serde_json::to_value(turn.position).ok()),
            metadata: to_value(serde_json::to_value(turn.metadata).ok()),
            continues: turn.continues,
            error: turn.error,
            notices: turn.notices,
            request: to_value(serde_json::to_value(turn.request).ok()),
        }
    }

    /// All visible variables.
    #[must_use]
    pub fn variables(&self) -> Map<String, Value> {
        self.dialogue.variables()
    }

    /// Messages so far, in order.
    #[must_use]
    pub fn history(&self) -> Vec<PromptMessage> {
        let messages = self.dialogue.history().iter();
        messages
            .map(|message| PromptMessage { role: message.role.clone(), content: message.content.clone() })
            .collect()
    }
}

/// Reader of the reply to a call.
pub struct CallReader {
    /// `None` once the reply has ended.
    reader: Option<ReplyReader>,
    /// True once the caller was given text of the answer, so that the reply cannot be asked for again.
    is_delivered: bool,
    /// Reply, once it has ended.
    result: Option<std::result::Result<ModelReply, Failure>>,
}

impl CallReader {
    /// Reads the next text of the reply; returns the events since the last push. Nothing happens after the
    /// end.
    pub fn push(&mut self, text: &str) -> Vec<Event<'static>> {
        let mut sink = EventCollector::default();
        if let Some(reader) = &mut self.reader {
            reader.push(text, &mut sink);
        }
        self.is_delivered |= sink.events.iter().any(|event| matches!(event, Event::FinalDelta { .. }));
        sink.events
    }

    /// Reads the whole reply, of which the caller shows nothing before it is accepted.
    pub fn push_whole(&mut self, text: &str) {
        self.push(text);
        self.is_delivered = false;
    }

    /// Reads reasoning that the service sent apart from the reply.
    pub fn push_reasoning(&mut self, text: &str) -> Vec<Event<'static>> {
        let mut sink = EventCollector::default();
        if let Some(reader) = &mut self.reader {
            reader.push_reasoning(text, &mut sink);
        }
        sink.events
    }

    /// Ends the reply; returns the last events, and the findings on the reply. Nothing happens when it is
    /// called again.
    pub fn finish(&mut self, end: &InputEnd) -> (Vec<Event<'static>>, Vec<Finding>) {
        let mut sink = EventCollector::default();
        if let Some(reader) = self.reader.take() {
            let is_delivered = self.is_delivered;
            let result = reader.finish(end, &mut sink);
            self.result = Some(result.map(|mut reply| {
                reply.is_delivered = is_delivered;
                reply
            }));
        }
        (sink.events, sink.findings)
    }
}
