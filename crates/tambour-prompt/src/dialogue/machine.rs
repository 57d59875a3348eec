//! The state machine of a dialogue: requests to its caller, and inputs from it.

mod env;
mod place;
mod round;
mod seek;

pub use env::{Env, Settings, Templates};

use serde_json::{Map, Value};

use super::call::{Call, call};
use super::hooks::{Moment, Proposal};
use super::reader::{Reply, Said as Answered};
use super::scopes::{Scopes, declared};
use super::state::{At, Dialogue, Gathered, Over, Said, Stage};
use super::turn::{Position, Replied, Turn};
use super::words;
use crate::script::{Action, ActionKind, Phase, Script, Step};
use crate::template;
use tambour::error::{Error, Result};
use tambour::event::{Extension, Failure, Notice};

/// Request of a dialogue to its caller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Want {
    /// Call the model, then [`Dialogue::reply`] or [`Dialogue::fail`].
    Call(Box<Call>),
    /// Pass this event to the client.
    Event(Box<Extension>),
    /// Wait for the user, then [`Dialogue::input`].
    User {
        /// Set if an input without text brings the next message.
        continues: bool,
    },
    /// Wait for the client, then [`Dialogue::answer`].
    Answer {
        /// Id of the request to be answered.
        call_id: String,
    },
    /// Nothing: the dialogue has ended.
    Finished,
}

/// Reason why an input is not accepted. The dialogue is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// No request with this id is pending.
    NotWaiting,
    /// The client has to answer this request first.
    AnswerExpected {
        /// Id of the request.
        call_id: String,
    },
}

impl Refusal {
    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::NotWaiting => "not_waiting",
            Refusal::AnswerExpected { .. } => "answer_expected",
        }
    }
}

/// Most notices of a turn.
const NOTICES: usize = 64;

impl Dialogue {
    /// Begins the session of that name, or the first. `variables` are values from the caller; they take
    /// precedence over those that the script declares.
    ///
    /// # Errors
    /// No session has that name.
    pub fn start(script: &Script, session: Option<&str>, variables: Map<String, Value>) -> Result<Dialogue> {
        let Some((index, found)) = script.session(session) else {
            let known = script.sessions.iter().map(|session| session.session.as_str());
            return Err(Error::unknown("session", session.unwrap_or_default(), known));
        };
        let mut scopes = Scopes { session: declared(&found.declare), ..Scopes::default() };
        scopes.session.extend(variables);
        Ok(Dialogue {
            session: index,
            at: At::default(),
            scopes,
            history: Vec::new(),
            running: None,
            requests: 0,
            over: None,
            // The first message is the model's, unless the user has one (S-064).
            turn: Gathered { continues: true, ..Gathered::default() },
        })
    }

    /// Takes an input of the user, with or without text. Call [`Dialogue::next`] afterwards.
    ///
    /// After a failure the same round is repeated (S-065): without text, with the user's earlier message,
    /// else with the new text in its place. A dialogue that has ended ignores the input (S-066).
    ///
    /// # Errors
    /// The client has to answer first.
    pub fn input(&mut self, text: Option<&str>, env: &Env<'_>) -> std::result::Result<(), Refusal> {
        if let Some(Stage::Client { call_id, .. }) = self.running.as_ref().map(|running| &running.stage) {
            return Err(Refusal::AnswerExpected { call_id: call_id.clone() });
        }
        let text = text.filter(|text| !text.trim().is_empty());
        self.turn = Gathered { open: true, ..Gathered::default() };
        if self.over.is_some() {
            return Ok(());
        }
        let again = matches!(self.stage(), Some(Stage::Model { .. } | Stage::Retry));
        if let Some(text) = text {
            // The last message is still the user's, as it was not answered.
            if again && self.history.last().is_some_and(|said| said.role == USER) {
                self.history.pop();
            }
            self.say(USER, text);
        }
        if let Some(running) = &mut self.running {
            running.replied |= running.spoken;
            if running.stage == Stage::Acknowledgement {
                self.acknowledged(env);
            } else {
                self.ask_model(env);
            }
        }
        Ok(())
    }

    /// Takes the client's answer, which becomes the value of the action's variable.
    ///
    /// # Errors
    /// No request with this id is pending.
    pub fn answer(&mut self, call_id: &str, value: Value, env: &Env<'_>) -> std::result::Result<(), Refusal> {
        let waiting = match self.stage() {
            Some(Stage::Client { call_id, .. }) => Some(call_id.as_str()),
            _ => None,
        };
        let client = match self.action(env.script).map(|action| &action.kind) {
            Some(ActionKind::Client(client)) if waiting == Some(call_id) => client,
            _ => return Err(Refusal::NotWaiting),
        };
        if let Some(variable) = &client.variable {
            self.scopes.set(variable, value);
        }
        self.turn = Gathered { open: true, ..Gathered::default() };
        self.done(true);
        Ok(())
    }

    /// Returns what is needed now. Repeated calls return the same; an event is returned once.
    pub fn next(&mut self, env: &Env<'_>) -> Want {
        loop {
            if self.over.is_some() {
                return Want::Finished;
            }
            if self.running.is_none() && !self.begin(env) {
                if self.over.is_some() {
                    continue;
                }
                return Want::User { continues: self.turn.continues };
            }
            let Some(running) = &mut self.running else { continue };
            match &mut running.stage {
                Stage::User | Stage::Retry | Stage::Acknowledgement => {
                    return Want::User { continues: false };
                }
                Stage::Client { call_id, told } => {
                    let call_id = call_id.clone();
                    if std::mem::replace(told, true) {
                        return Want::Answer { call_id };
                    }
                    if let Some(event) = self.request(call_id, env) {
                        return Want::Event(Box::new(event));
                    }
                }
                Stage::Model { .. } => {
                    let running = running.clone();
                    let Some(action) = self.action(env.script) else {
                        self.running = None;
                        continue;
                    };
                    match call(self, action, &running, env) {
                        Ok(call) => return Want::Call(Box::new(call)),
                        // The template may still be added.
                        Err(failure) if failure.code == template::NOT_FOUND => self.fail(failure, env),
                        Err(failure) => self.fails(failure),
                    }
                }
            }
        }
    }

    /// Takes the model's reply to a call (S-060); ignored if no call is pending. An unusable reply is
    /// requested again (S-054). A reply without a message answers no round, not even after the last attempt.
    pub fn reply(&mut self, call: &Call, reply: &Reply, env: &Env<'_>) -> Replied {
        let (Some(Stage::Model { attempt, .. }), Some(action)) = (self.stage(), self.action(env.script))
        else {
            return Replied::default();
        };
        let attempt = *attempt;
        if reply.unreadable.is_some() && !reply.delivered && attempt < env.settings.max_reasks {
            let because = reply.unreadable.clone();
            self.wait_for(Stage::Model { attempt: attempt + 1, because });
            return Replied { asked_again: true, ..Replied::default() };
        }
        let language = env.settings.texts.language;
        let came = match (&action.kind, &reply.said) {
            (ActionKind::Say(_) | ActionKind::Ask(_), _) if reply.silent => {
                self.unanswered("message_missing", words::without_message(attempt + 1, language), env)
            }
            (ActionKind::Say(say), Answered::Answer(answer)) => self.said(say, answer, &reply.message, env),
            (ActionKind::Ask(ask), Answered::Value(value)) => {
                self.asked(ask, value.as_ref(), &reply.message, action, language)
            }
            (ActionKind::Think(_), Answered::Thought(Some(values))) => {
                values.iter().for_each(|(name, value)| self.scopes.set(name, value.clone()));
                self.answered(None, action, None);
                self.done(true);
                Replied { assigned: values.clone(), ..Replied::default() }
            }
            // The user sees none of it and it has no effect, so it counts like a model that could not be
            // reached.
            _ => self.unanswered("reply_unreadable", words::unreadable(attempt + 1, language), env),
        };
        let variables = self.scopes.visible();
        let moment = Moment { action, round: call.round, variables: &variables };
        self.follow(env.hooks.after(&moment, call, reply, &came));
        came
    }

    /// Fails the round after the last attempt.
    fn unanswered(&mut self, code: &'static str, message: String, env: &Env<'_>) -> Replied {
        let failure = Failure::new(code, message, true);
        self.fail(failure.clone(), env);
        Replied { failure: Some(failure), ..Replied::default() }
    }

    /// Records that the model could not be reached or its reply was interrupted: the round does not count,
    /// and the next input repeats the request (S-065).
    pub fn fail(&mut self, failure: Failure, env: &Env<'_>) {
        if !matches!(self.stage(), Some(Stage::Model { .. })) {
            return;
        }
        if let Some(action) = self.action(env.script) {
            self.answered(None, action, None);
        }
        self.wait_for(Stage::Retry);
        self.turn.error = Some(failure);
    }

    /// Returns the outcome of the last input (S-061).
    #[must_use]
    pub fn turn(&self, script: &Script) -> Turn {
        let error = match (&self.turn.error, &self.over) {
            (None, Some(Over::Failed(failure))) => Some(failure),
            (error, _) => error.as_ref(),
        };
        Turn {
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

    /// Returns the next or current part of the script, or the last one if the dialogue has ended.
    #[must_use]
    pub fn position(&self, script: &Script) -> Option<Position> {
        let session = script.sessions.get(self.session)?;
        let At { phase, step, action, .. } = self.at;
        let here = |phase: &Phase, step: &Step, action: &Action| Position {
            session: session.session.clone(),
            phase: phase.phase.clone(),
            topic: step.topic.clone(),
            action_type: action.type_name().to_owned(),
            action_id: action.action_id.clone(),
            path: action.path.clone(),
        };
        let from = session.phases.iter().enumerate().flat_map(|(in_phase, phase)| {
            let steps = phase.steps.iter().enumerate();
            steps.flat_map(move |(in_step, step)| {
                let actions = step.actions.iter().enumerate();
                actions.map(move |(number, action)| ((in_phase, in_step, number), phase, step, action))
            })
        });
        let next = from.clone().find(|(at, ..)| *at >= (phase, step, action));
        next.or_else(|| from.last()).map(|(_, phase, step, action)| here(phase, step, action))
    }

    fn stage(&self) -> Option<&Stage> {
        self.running.as_ref().map(|running| &running.stage)
    }

    fn wait_for(&mut self, stage: Stage) {
        if let Some(running) = &mut self.running {
            running.stage = stage;
        }
    }

    fn say(&mut self, role: &str, content: &str) {
        self.history.push(Said { role: role.to_owned(), content: content.to_owned() });
    }

    /// Ends an action whose last message the user has acknowledged (S-081).
    fn acknowledged(&mut self, env: &Env<'_>) {
        if let Some(action) = self.action(env.script) {
            self.answered(None, action, None);
        }
        // The action ends without a model call; the next message belongs to another turn.
        self.turn.spoken = true;
        self.done(true);
    }

    /// Ends the action.
    fn done(&mut self, continues: bool) {
        self.running = None;
        self.at.action += 1;
        self.turn.completed = true;
        self.turn.continues = continues;
    }

    /// Ends the dialogue with a failure.
    fn fails(&mut self, failure: Failure) {
        self.running = None;
        self.over = Some(Over::Failed(failure));
    }

    /// Applies the proposals of hooks.
    fn follow(&mut self, proposals: Vec<Proposal>) {
        for proposal in proposals {
            match proposal {
                Proposal::Set { name, value } => self.scopes.set(&name, value),
                Proposal::Signal { code, message } => self.notice(code, message),
            }
        }
    }

    fn notice(&mut self, code: impl Into<std::borrow::Cow<'static, str>>, message: String) {
        if self.turn.notices.len() < NOTICES {
            self.turn.notices.push(Notice { code: code.into(), message, reference: None });
        }
    }
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";
