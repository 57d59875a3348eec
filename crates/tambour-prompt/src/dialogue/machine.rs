//! The state machine of a dialogue: requests to the caller, and inputs from the caller.

mod env;
mod round;
mod seek;

pub use env::{DialogueEnv, DialogueSettings, TemplateSource};

use serde_json::{Map, Value};

use super::call::{ModelCall, build_call};
use super::hooks::{HookContext, HookProposal};
use super::messages;
use super::reader::{ModelReply, ReplyContent};
use super::state::{
    ActionIndex, AwaitedInput, Dialogue, DialogueEnd, HistoryMessage, PartialTurn, VariableScopes,
    initial_values,
};
use super::turn::{DialoguePosition, DialogueTurn, ReplyEffect};
use crate::script::{Script, ScriptAction, ScriptActionKind, ScriptPhase, ScriptStep};
use crate::template;
use tambour::error::{Error, Result};
use tambour::event::{Extension, Failure, Notice};

/// Request of a dialogue to its caller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DialogueRequest {
    /// Call the model, and pass its reply to [`Dialogue::reply`], or the failure to [`Dialogue::fail`].
    Call(Box<ModelCall>),
    /// Pass this event to the client.
    Event(Box<Extension>),
    /// Wait for the user, and pass the input to [`Dialogue::input`].
    User {
        /// True if an input without text brings the next message.
        continues: bool,
    },
    /// Wait for the client, and pass its answer to [`Dialogue::answer`].
    Answer {
        /// Id of the request to be answered.
        call_id: String,
    },
    /// Do nothing: the dialogue has ended.
    Finished,
}

/// Reason why an input of the user, or an answer of the client, is not accepted. The dialogue is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputRefusal {
    /// No request with this id is pending.
    NotWaiting,
    /// The client has to answer this request first.
    AnswerExpected {
        /// Id of the request.
        call_id: String,
    },
}

impl InputRefusal {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            InputRefusal::NotWaiting => "not_waiting",
            InputRefusal::AnswerExpected { .. } => "answer_expected",
        }
    }
}

/// Maximum number of notices of a turn; further ones are dropped.
const MAX_NOTICES: usize = 64;

impl Dialogue {
    /// Begins the session named `session`, or the first one if `None`. `variables` are values from the
    /// caller; they take precedence over those that the script declares.
    ///
    /// # Errors
    /// The script has no such session.
    pub fn start(script: &Script, session: Option<&str>, variables: Map<String, Value>) -> Result<Dialogue> {
        let Some((index, script_session)) = script.find_session(session) else {
            let session_names = script.sessions.iter().map(|session| session.session.as_str());
            return Err(Error::unknown("session", session.unwrap_or_default(), session_names));
        };
        let mut scopes =
            VariableScopes { session: initial_values(&script_session.declare), ..VariableScopes::default() };
        scopes.session.extend(variables);
        Ok(Dialogue {
            session: index,
            at: ActionIndex::default(),
            scopes,
            history: Vec::new(),
            running: None,
            requests: 0,
            over: None,
            // The model speaks first, unless the user begins with a message (S-064).
            turn: PartialTurn { continues: true, ..PartialTurn::default() },
        })
    }

    /// Takes an input of the user, with or without text. Call [`Dialogue::next`] afterwards.
    ///
    /// After a failure the same round is repeated (S-065), and a new text replaces the user's unanswered
    /// message. A dialogue that has ended ignores the input (S-066).
    ///
    /// # Errors
    /// The client has to answer first.
    pub fn input(
        &mut self,
        text: Option<&str>,
        env: &DialogueEnv<'_>,
    ) -> std::result::Result<(), InputRefusal> {
        if let Some(AwaitedInput::Client { call_id, .. }) =
            self.running.as_ref().map(|running_action| &running_action.awaited_input)
        {
            return Err(InputRefusal::AnswerExpected { call_id: call_id.clone() });
        }
        let text = text.filter(|text| !text.trim().is_empty());
        self.turn = PartialTurn { open: true, ..PartialTurn::default() };
        if self.over.is_some() {
            return Ok(());
        }
        let is_repeated =
            matches!(self.awaited_input(), Some(AwaitedInput::Model { .. } | AwaitedInput::Retry));
        if let Some(text) = text {
            // The new text takes the place of the user's last message, which was not answered.
            if is_repeated && self.history.last().is_some_and(|message| message.role == USER) {
                self.history.pop();
            }
            self.push_history(USER, text);
        }
        if let Some(running_action) = &mut self.running {
            running_action.replied |= running_action.has_first_message;
            if running_action.awaited_input == AwaitedInput::Acknowledgement {
                self.end_acknowledged(env);
            } else {
                self.request_model(env);
            }
        }
        Ok(())
    }

    /// Takes the client's answer, which becomes the value of the action's variable, if the action has one.
    ///
    /// # Errors
    /// No request with this id is pending.
    pub fn answer(
        &mut self,
        call_id: &str,
        value: Value,
        env: &DialogueEnv<'_>,
    ) -> std::result::Result<(), InputRefusal> {
        let pending_id = match self.awaited_input() {
            Some(AwaitedInput::Client { call_id, .. }) => Some(call_id.as_str()),
            _ => None,
        };
        let client = match self.current_action(env.script).map(|action| &action.kind) {
            Some(ScriptActionKind::Client(client)) if pending_id == Some(call_id) => client,
            _ => return Err(InputRefusal::NotWaiting),
        };
        if let Some(variable) = &client.variable {
            self.scopes.set(variable, value);
        }
        self.turn = PartialTurn { open: true, ..PartialTurn::default() };
        let continues = true;
        self.end_action(continues);
        Ok(())
    }

    /// Returns the current request. Repeated calls return the same one, except that an event is returned only
    /// once.
    pub fn next(&mut self, env: &DialogueEnv<'_>) -> DialogueRequest {
        loop {
            if self.over.is_some() {
                return DialogueRequest::Finished;
            }
            if self.running.is_none() && !self.begin_next(env) {
                if self.over.is_some() {
                    continue;
                }
                return DialogueRequest::User { continues: self.turn.continues };
            }
            let Some(running_action) = &mut self.running else { continue };
            match &mut running_action.awaited_input {
                AwaitedInput::User | AwaitedInput::Retry | AwaitedInput::Acknowledgement => {
                    return DialogueRequest::User { continues: false };
                }
                AwaitedInput::Client { call_id, told: was_told } => {
                    let call_id = call_id.clone();
                    if std::mem::replace(was_told, true) {
                        return DialogueRequest::Answer { call_id };
                    }
                    if let Some(event) = self.build_request(call_id, env) {
                        return DialogueRequest::Event(Box::new(event));
                    }
                }
                AwaitedInput::Model { .. } => {
                    let running_action = running_action.clone();
                    let Some(action) = self.current_action(env.script) else {
                        self.running = None;
                        continue;
                    };
                    match build_call(self, action, &running_action, env) {
                        Ok(call) => return DialogueRequest::Call(Box::new(call)),
                        // The template may be added later, so the next input repeats the round.
                        Err(failure) if failure.code == template::TEMPLATE_NOT_FOUND => {
                            self.fail(failure, env)
                        }
                        Err(failure) => self.fail_dialogue(failure),
                    }
                }
            }
        }
    }

    /// Takes the model's reply to a call (S-060); ignored if no call is pending. An unusable reply is
    /// requested again (S-054), unless the user has seen some of it or no attempt is left. For `ai_say` and
    /// `ai_ask`, a reply without a message never answers a round.
    pub fn reply(&mut self, call: &ModelCall, reply: &ModelReply, env: &DialogueEnv<'_>) -> ReplyEffect {
        let (Some(AwaitedInput::Model { attempt, .. }), Some(action)) =
            (self.awaited_input(), self.current_action(env.script))
        else {
            return ReplyEffect::default();
        };
        let attempt = *attempt;
        if reply.unreadable_reason.is_some() && !reply.is_delivered && attempt < env.settings.max_reasks {
            let reason = reply.unreadable_reason.clone();
            self.await_input(AwaitedInput::Model { attempt: attempt + 1, because: reason });
            return ReplyEffect { asked_again: true, ..ReplyEffect::default() };
        }
        let language = env.settings.texts.language;
        let effect = match (&action.kind, &reply.content) {
            (ScriptActionKind::Say(_) | ScriptActionKind::Ask(_), _) if reply.is_silent => {
                self.fail_round("message_missing", messages::message_missing(attempt + 1, language), env)
            }
            (ScriptActionKind::Say(say), ReplyContent::Answer(answer)) => {
                self.apply_say(say, answer, &reply.message, env)
            }
            (ScriptActionKind::Ask(ask), ReplyContent::Value(value)) => {
                self.apply_ask(ask, value.as_ref(), &reply.message, action, language)
            }
            (ScriptActionKind::Think(_), ReplyContent::Thought(Some(values))) => {
                values.iter().for_each(|(name, value)| self.scopes.set(name, value.clone()));
                self.record_turn(None, action, None);
                let continues = true;
                self.end_action(continues);
                ReplyEffect { assigned: values.clone(), ..ReplyEffect::default() }
            }
            // The user sees nothing of the reply and it has no effect, so it counts like a failed call.
            _ => self.fail_round("reply_unreadable", messages::reply_unreadable(attempt + 1, language), env),
        };
        let variables = self.scopes.visible();
        let context = HookContext { action, round: call.round, variables: &variables };
        self.apply_proposals(env.hooks.after_reply(&context, call, reply, &effect));
        effect
    }

    /// Fails the round, whose reply cannot be used and is not requested again: the next input repeats the
    /// call.
    fn fail_round(&mut self, code: &'static str, message: String, env: &DialogueEnv<'_>) -> ReplyEffect {
        let is_retryable = true;
        let failure = Failure::new(code, message, is_retryable);
        self.fail(failure.clone(), env);
        ReplyEffect { failure: Some(failure), ..ReplyEffect::default() }
    }

    /// Records that a call failed: the model could not be reached, its reply was interrupted or cannot be
    /// used, or the template is missing. The round does not count, and the next input repeats the request
    /// (S-065). Ignored if no call is pending.
    pub fn fail(&mut self, failure: Failure, env: &DialogueEnv<'_>) {
        if !matches!(self.awaited_input(), Some(AwaitedInput::Model { .. })) {
            return;
        }
        if let Some(action) = self.current_action(env.script) {
            self.record_turn(None, action, None);
        }
        self.await_input(AwaitedInput::Retry);
        self.turn.error = Some(failure);
    }

    /// Returns the outcome of the last input (S-061).
    #[must_use]
    pub fn turn(&self, script: &Script) -> DialogueTurn {
        let error = match (&self.turn.error, &self.over) {
            (None, Some(DialogueEnd::Failed(failure))) => Some(failure),
            (error, _) => error.as_ref(),
        };
        DialogueTurn {
            success: error.is_none(),
            completed: (self.turn.completed || self.over.is_some()) && error.is_none(),
            ai_message: self.turn.message.clone(),
            status: self.status(),
            position: self.position(script),
            metadata: self.turn.metadata.clone(),
            continues: self.turn.continues && self.over.is_none() && self.running.is_none(),
            error: error.cloned(),
            notices: self.turn.notices.clone(),
            request: self.turn.request.clone(),
        }
    }

    /// Returns the position of the current or next action, or of the last one if the dialogue has ended;
    /// `None` for a session without actions.
    #[must_use]
    pub fn position(&self, script: &Script) -> Option<DialoguePosition> {
        let session = script.sessions.get(self.session)?;
        let ActionIndex { phase, step, action, .. } = self.at;
        let position_of = |phase: &ScriptPhase, step: &ScriptStep, action: &ScriptAction| DialoguePosition {
            session: session.session.clone(),
            phase: phase.phase.clone(),
            topic: step.topic.clone(),
            action_type: action.type_name().to_owned(),
            action_id: action.action_id.clone(),
            path: action.path.clone(),
        };
        // All actions of the session, by the indexes of phase, step and action.
        let actions = session.phases.iter().enumerate().flat_map(|(phase_index, phase)| {
            let steps = phase.steps.iter().enumerate();
            steps.flat_map(move |(step_index, step)| {
                step.actions.iter().enumerate().map(move |(action_index, action)| {
                    ((phase_index, step_index, action_index), phase, step, action)
                })
            })
        });
        // The position may be past the end of a step; then the next action from there is meant.
        let current = actions.clone().find(|(indexes, ..)| *indexes >= (phase, step, action));
        current.or_else(|| actions.last()).map(|(_, phase, step, action)| position_of(phase, step, action))
    }

    fn awaited_input(&self) -> Option<&AwaitedInput> {
        self.running.as_ref().map(|running_action| &running_action.awaited_input)
    }

    fn await_input(&mut self, awaited_input: AwaitedInput) {
        if let Some(running_action) = &mut self.running {
            running_action.awaited_input = awaited_input;
        }
    }

    fn push_history(&mut self, role: &str, content: &str) {
        self.history.push(HistoryMessage { role: role.to_owned(), content: content.to_owned() });
    }

    /// Ends an action whose last message the user has acknowledged (S-081).
    fn end_acknowledged(&mut self, env: &DialogueEnv<'_>) {
        if let Some(action) = self.current_action(env.script) {
            self.record_turn(None, action, None);
        }
        // The action ends without a model call; the next message belongs to another turn.
        self.turn.needs_new_turn = true;
        let continues = true;
        self.end_action(continues);
    }

    /// Ends the action. `continues` is true if the next one may begin without a message of the user.
    fn end_action(&mut self, continues: bool) {
        self.running = None;
        self.at.action += 1;
        self.turn.completed = true;
        self.turn.continues = continues;
    }

    /// Ends the dialogue with a failure.
    fn fail_dialogue(&mut self, failure: Failure) {
        self.running = None;
        self.over = Some(DialogueEnd::Failed(failure));
    }

    /// Applies the proposals of hooks.
    fn apply_proposals(&mut self, proposals: Vec<HookProposal>) {
        for proposal in proposals {
            match proposal {
                HookProposal::Set { name, value } => self.scopes.set(&name, value),
                HookProposal::Signal { code, message } => self.add_notice(code, message),
            }
        }
    }

    /// Adds a notice to the turn, up to a limit.
    fn add_notice(&mut self, code: impl Into<std::borrow::Cow<'static, str>>, message: String) {
        if self.turn.notices.len() < MAX_NOTICES {
            self.turn.notices.push(Notice { code: code.into(), message, reference: None });
        }
    }
}

// Roles of messages in the history.
const USER: &str = "user";
const ASSISTANT: &str = "assistant";
