//! Interface of the encoders, which write the log of one message in one protocol, and the encoder of native
//! protocols.

use std::borrow::Cow;

use serde::Deserialize;

use super::legacy::shown_reply;
use super::sse::{Envelope, frame};
use super::{Protocol, data, json};
use crate::event::{Event, EventKind, kind_of};

/// One log entry as passed to an encoder.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Number in the message, from 1.
    pub number: u64,
    /// Kind of entry.
    pub kind: EntryKind<'a>,
    /// JSON in one line: a string for text, an object for an event.
    pub json: &'a str,
    /// Whole raw reply, if [`Encoder::wants_reply`] asked for it.
    pub reply: Option<&'a str>,
}

/// Kind of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind<'a> {
    /// Raw text of the reply, with its number among the raw entries, from 1.
    Raw(u64),
    /// Reasoning that the upstream sent in a field of its own.
    Reasoning,
    /// An event, by name.
    Event(&'a str),
}

/// Writes a log in one protocol. The output depends on the entries alone, so a replay yields the same bytes.
pub trait Encoder: Send {
    /// Writes the start of the stream, before any entry. `running`: more entries will come; `now`: RFC 3339
    /// time.
    fn open(&mut self, running: bool, now: &str, out: &mut Vec<u8>);

    /// Writes the next entry. Many entries produce no output.
    fn entry(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>);

    /// Writes a keep-alive while no entries come.
    fn heartbeat(&mut self, now: &str, out: &mut Vec<u8>);

    /// Returns whether the stream is over for the client.
    fn is_over(&self) -> bool;

    /// Returns whether it needs all entries from the first one on, even for a client that has seen some.
    fn folds(&self) -> bool {
        true
    }

    /// Returns whether it needs the whole raw reply with this entry.
    fn wants_reply(&self, _: EntryKind<'_>) -> bool {
        false
    }
}

/// Part of `completed` that names the dialect.
#[derive(Deserialize)]
struct Ended<'a> {
    #[serde(borrow)]
    metadata: EndedMetadata<'a>,
}

#[derive(Deserialize)]
struct EndedMetadata<'a> {
    #[serde(borrow)]
    dialect: Cow<'a, str>,
}

/// Encoder of the native protocols: each frame depends on its entry alone.
#[derive(Debug)]
pub struct Native {
    envelope: Envelope,
    protocol: Protocol,
    extensions: bool,
    findings: bool,
    over: bool,
}

impl Native {
    /// Creates an encoder of `protocol`, with extension events and findings on request.
    #[must_use]
    pub fn new(envelope: Envelope, protocol: Protocol, extensions: bool, findings: bool) -> Native {
        Native { envelope, protocol, extensions, findings, over: false }
    }

    fn system(&self, event: &Event<'_>, out: &mut Vec<u8>) {
        frame(event.name(), None, &self.envelope, out, |out| data(event, out));
    }

    fn sees(&self, name: &str) -> bool {
        match kind_of(name) {
            Some(EventKind::System) => true,
            Some(EventKind::Contract) => self.protocol == Protocol::JsonSeqV1,
            Some(EventKind::Extension) => {
                self.protocol == Protocol::JsonSeqV1
                    && if name == "finding" { self.findings } else { self.extensions }
            }
            None => false,
        }
    }
}

impl Encoder for Native {
    fn open(&mut self, running: bool, now: &str, out: &mut Vec<u8>) {
        let state = if running { "running" } else { "ended" };
        self.system(&Event::Status { state: state.into() }, out);
        self.heartbeat(now, out);
    }

    fn entry(&mut self, entry: &Entry<'_>, out: &mut Vec<u8>) {
        let Entry { number, kind, json: text, reply } = *entry;
        match kind {
            EntryKind::Raw(seq) if self.protocol == Protocol::Legacy => {
                frame("content_delta", Some(number), &self.envelope, out, |out| {
                    out.extend_from_slice(b"{\"seq\":");
                    json::number(seq, out);
                    out.extend_from_slice(b",\"delta\":");
                    out.extend_from_slice(text.as_bytes());
                    out.push(b'}');
                });
            }
            EntryKind::Event(name) if self.sees(name) => {
                // A status has no number (J-036), so a client that reconnects after it receives it again.
                let number = (name != "status").then_some(number);
                frame(name, number, &self.envelope, out, |out| match reply {
                    Some(reply) => {
                        let dialect =
                            serde_json::from_str::<Ended<'_>>(text).map(|ended| ended.metadata.dialect);
                        let reply = shown_reply(&dialect.unwrap_or_default(), reply);
                        out.extend_from_slice(text.strip_suffix('}').unwrap_or("{").as_bytes());
                        out.extend_from_slice(b",\"reply\":");
                        json::string(&reply, out);
                        out.push(b'}');
                    }
                    None => out.extend_from_slice(text.as_bytes()),
                });
                self.over |= matches!(name, "completed" | "error");
            }
            EntryKind::Raw(_) | EntryKind::Reasoning | EntryKind::Event(_) => {}
        }
    }

    fn heartbeat(&mut self, now: &str, out: &mut Vec<u8>) {
        self.system(&Event::Heartbeat { ts: now.to_owned().into() }, out);
    }

    fn is_over(&self) -> bool {
        self.over
    }

    fn folds(&self) -> bool {
        false
    }

    fn wants_reply(&self, kind: EntryKind<'_>) -> bool {
        self.protocol == Protocol::Legacy && kind == EntryKind::Event("completed")
    }
}
