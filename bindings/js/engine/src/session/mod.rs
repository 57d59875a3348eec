//! Objects that live on between calls.

#[cfg(feature = "prompts")]
mod dialogue;
mod partial;
mod pipeline;
mod state;

use std::sync::{Arc, Mutex, PoisonError};

use tambour::error::{Error, Result};
use tambour_bindings::state::StateStore;

use crate::answer::{Answer, catch, describe_error, describe_panic, guard};
#[cfg(feature = "prompts")]
use dialogue::{DialogueSession, ReplySession, ScriptSession};
use partial::PartialSession;
use pipeline::PipelineSession;

/// State that pipelines share with its own session.
type SharedState = Arc<Mutex<StateStore>>;

/// Object of one of several kinds. It serves one thread at a time.
pub struct Session {
    /// `None` once it was closed, or after a panic, which may have left anything behind.
    kind: Option<Kind>,
}

enum Kind {
    Pipeline(Box<PipelineSession>),
    Partial(Box<PartialSession>),
    State(SharedState),
    #[cfg(feature = "prompts")]
    Script(ScriptSession),
    #[cfg(feature = "prompts")]
    Dialogue(Box<DialogueSession>),
    #[cfg(feature = "prompts")]
    Reply(ReplySession),
}

/// Input of [`Session::push`].
#[derive(Clone, Copy)]
pub enum Chunk<'a> {
    /// Text.
    Text(&'a str),
    /// Bytes, which may be cut within a character.
    Bytes(&'a [u8]),
}

impl Session {
    /// Creates an object: `pipeline`, `partial`, `state`, `state_restored`, and with the feature `prompts` also
    /// `script`.
    ///
    /// # Errors
    /// The kind or an argument is at fault; a script that cannot run gives an error with its `problems`.
    pub fn open(kind: &str, arguments: &str) -> std::result::Result<Session, String> {
        let mut opened = None;
        guard(|| {
            opened = Some(match kind {
                "pipeline" => Kind::Pipeline(Box::new(PipelineSession::open(arguments, None)?)),
                "partial" => Kind::Partial(Box::new(PartialSession::open(arguments)?)),
                "state" => Kind::State(state::open(arguments)?),
                "state_restored" => Kind::State(state::restore(arguments)?),
                #[cfg(feature = "prompts")]
                "script" => Kind::Script(match ScriptSession::open(arguments)? {
                    Ok(script) => script,
                    Err(problems) => return Ok(problems),
                }),
                _ => return Err(Error::unknown("kind of object", kind, ["pipeline", "partial", "state"])),
            });
            Ok(String::new())
        })
        .and_then(|problems| match opened {
            Some(kind) => Ok(Session { kind: Some(kind) }),
            None => Err(problems),
        })
    }

    /// Creates an object that belongs to this one: the `pipeline` of a state, the `next_reply` of a pipeline, the
    /// `dialogue` of a script, the `reader` of a reply of a dialogue.
    ///
    /// # Errors
    /// The kind does not belong to this object, or an argument is at fault.
    pub fn open_next(&mut self, kind: &str, arguments: &str) -> std::result::Result<Session, String> {
        let mut opened = None;
        self.run(|object| {
            opened = Some(match (object, kind) {
                (Kind::State(state), "pipeline") => {
                    Kind::Pipeline(Box::new(PipelineSession::open(arguments, Some(Arc::clone(state)))?))
                }
                (Kind::Pipeline(pipeline), "next_reply") => {
                    Kind::Pipeline(Box::new(pipeline.next_reply(arguments)?))
                }
                #[cfg(feature = "prompts")]
                (Kind::Script(script), "dialogue") => Kind::Dialogue(Box::new(script.start(arguments)?)),
                #[cfg(feature = "prompts")]
                (Kind::Dialogue(dialogue), "reader") => Kind::Reply(dialogue.reader()?),
                _ => return Err(unknown_method(kind)),
            });
            Ok(String::new())
        })?;
        Ok(Session { kind: opened })
    }

    /// Reads the next chunk of a reply; returns the events or steps as a JSON array, or an empty text for none.
    ///
    /// # Errors
    /// The object reads no reply.
    pub fn push(&mut self, chunk: Chunk<'_>) -> Answer {
        self.run(|object| match object {
            Kind::Pipeline(pipeline) => pipeline.push(chunk),
            Kind::Partial(partial) => partial.push(chunk),
            #[cfg(feature = "prompts")]
            Kind::Reply(reply) => reply.push(chunk),
            _ => Err(unknown_method("push")),
        })
    }

    /// Calls a method.
    ///
    /// # Errors
    /// The object has no such method, or an argument is at fault.
    pub fn call(&mut self, method: &str, arguments: &str) -> Answer {
        self.run(|object| match object {
            Kind::Pipeline(pipeline) => pipeline.call(method, arguments),
            Kind::Partial(partial) => partial.call(method),
            Kind::State(state) => state::call(&mut lock(state), method, arguments),
            #[cfg(feature = "prompts")]
            Kind::Script(script) => script.call(method),
            #[cfg(feature = "prompts")]
            Kind::Dialogue(dialogue) => dialogue.call(method, arguments),
            #[cfg(feature = "prompts")]
            Kind::Reply(reply) => reply.call(method, arguments),
        })
    }

    /// Drops the object; further calls are errors.
    pub fn close(&mut self) {
        self.kind = None;
    }

    /// Runs a call on the object, which is dropped if the call panics.
    fn run(&mut self, call: impl FnOnce(&mut Kind) -> Result<String>) -> Answer {
        let Some(kind) = &mut self.kind else {
            let error = Error::invalid("the object was closed, or an earlier call has failed");
            return Err(describe_error(&error.with_code("closed")).to_string());
        };
        catch(|| call(kind)).unwrap_or_else(|| {
            self.kind = None;
            Err(describe_panic())
        })
    }
}

/// Locks what two objects share. They serve one thread, so nothing waits.
fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unknown_method(name: &str) -> Error {
    Error::invalid(format!("this object has no method `{name}`"))
}
