//! Trait of the encoders, which write the log of one message in one protocol, and the encoder of the native
//! protocols, `legacy` and `jsonseq_v1`.

use std::borrow::Cow;

use serde::Deserialize;

use super::legacy::render_reply;
use super::sse::{Envelope, write_frame};
use super::{OutputProtocol, json, write_data};
use crate::event::{Event, EventKind, parse_kind};

/// One log entry as passed to an encoder.
#[derive(Clone, Copy, Debug)]
pub struct EncoderEntry<'a> {
    /// Number of the entry in the log of its message, from 1.
    pub number: u64,
    /// Kind of entry.
    pub kind: EncoderEntryKind<'a>,
    /// JSON in one line: a string for text, an object for an event.
    pub json: &'a str,
    /// Whole raw reply, if [`Encoder::wants_reply`] asked for it.
    pub reply: Option<&'a str>,
}

/// Kind of a log entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncoderEntryKind<'a> {
    /// Raw text of the reply, with its number among the raw entries, from 1.
    Raw(u64),
    /// Reasoning that the upstream sent in a separate field, not in the reply.
    Reasoning,
    /// An event, by name.
    Event(&'a str),
}

/// Writes a log in one protocol. The output for entries depends on the entries alone, so a replay of the log
/// yields the same bytes for them.
pub trait Encoder: Send {
    /// Writes the start of the stream, before any entry. `is_running` is true if the message is still
    /// running; `now` is the time in RFC 3339.
    fn write_start(&mut self, is_running: bool, now: &str, out: &mut Vec<u8>);

    /// Writes the next entry; many entries have no output.
    fn write_entry(&mut self, entry: &EncoderEntry<'_>, out: &mut Vec<u8>);

    /// Writes a keep-alive; called while the log has no new entry. `now` is the time in RFC 3339.
    fn write_heartbeat(&mut self, now: &str, out: &mut Vec<u8>);

    /// Returns whether the stream is over for the client.
    fn is_over(&self) -> bool;

    /// Returns whether the encoder needs all entries from the first one on, even for a client that has seen
    /// some.
    fn needs_all_entries(&self) -> bool {
        true
    }

    /// Returns whether the encoder needs the whole raw reply with an entry of this kind.
    fn wants_reply(&self, _: EncoderEntryKind<'_>) -> bool {
        false
    }
}

/// Data of `completed`, as far as it is needed to find the dialect.
#[derive(Deserialize)]
struct CompletedData<'a> {
    #[serde(borrow)]
    metadata: CompletedMetadata<'a>,
}

#[derive(Deserialize)]
struct CompletedMetadata<'a> {
    #[serde(borrow)]
    dialect: Cow<'a, str>,
}

/// Encoder of the native protocols: each frame depends on its entry alone.
#[derive(Debug)]
pub struct NativeEncoder {
    envelope: Envelope,
    protocol: OutputProtocol,
    sends_extensions: bool,
    sends_findings: bool,
    is_over: bool,
}

impl NativeEncoder {
    /// Creates an encoder of `protocol`. Extension events and findings are sent only if the flags say so.
    #[must_use]
    pub fn new(
        envelope: Envelope,
        protocol: OutputProtocol,
        sends_extensions: bool,
        sends_findings: bool,
    ) -> NativeEncoder {
        NativeEncoder { envelope, protocol, sends_extensions, sends_findings, is_over: false }
    }

    /// Writes a system event that is not in the log, and so has no number.
    fn write_system(&self, event: &Event<'_>, out: &mut Vec<u8>) {
        write_frame(event.name(), None, &self.envelope, out, |out| write_data(event, out));
    }

    /// Returns whether the event called `name` is sent.
    fn includes(&self, name: &str) -> bool {
        match parse_kind(name) {
            Some(EventKind::System) => true,
            Some(EventKind::Contract) => self.protocol == OutputProtocol::JsonSeqV1,
            Some(EventKind::Extension) => {
                self.protocol == OutputProtocol::JsonSeqV1
                    && if name == "finding" { self.sends_findings } else { self.sends_extensions }
            }
            None => false,
        }
    }
}

impl Encoder for NativeEncoder {
    fn write_start(&mut self, is_running: bool, now: &str, out: &mut Vec<u8>) {
        let state = if is_running { "running" } else { "ended" };
        self.write_system(&Event::Status { state: state.into() }, out);
        self.write_heartbeat(now, out);
    }

    fn write_entry(&mut self, entry: &EncoderEntry<'_>, out: &mut Vec<u8>) {
        let EncoderEntry { number, kind, json: text, reply } = *entry;
        match kind {
            EncoderEntryKind::Raw(seq) if self.protocol == OutputProtocol::Legacy => {
                write_frame("content_delta", Some(number), &self.envelope, out, |out| {
                    out.extend_from_slice(b"{\"seq\":");
                    json::write_number(seq, out);
                    out.extend_from_slice(b",\"delta\":");
                    out.extend_from_slice(text.as_bytes());
                    out.push(b'}');
                });
            }
            EncoderEntryKind::Event(name) if self.includes(name) => {
                // A status has no number (J-036), so a client that reconnects after it receives it again.
                let number = (name != "status").then_some(number);
                write_frame(name, number, &self.envelope, out, |out| match reply {
                    // The member `reply` is added before the closing brace.
                    Some(reply) => {
                        let dialect = serde_json::from_str::<CompletedData<'_>>(text)
                            .map(|completed| completed.metadata.dialect);
                        let reply = render_reply(&dialect.unwrap_or_default(), reply);
                        out.extend_from_slice(text.strip_suffix('}').unwrap_or("{").as_bytes());
                        out.extend_from_slice(b",\"reply\":");
                        json::write_string(&reply, out);
                        out.push(b'}');
                    }
                    None => out.extend_from_slice(text.as_bytes()),
                });
                self.is_over |= matches!(name, "completed" | "error");
            }
            EncoderEntryKind::Raw(_) | EncoderEntryKind::Reasoning | EncoderEntryKind::Event(_) => {}
        }
    }

    fn write_heartbeat(&mut self, now: &str, out: &mut Vec<u8>) {
        self.write_system(&Event::Heartbeat { ts: now.to_owned().into() }, out);
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn needs_all_entries(&self) -> bool {
        false
    }

    fn wants_reply(&self, kind: EncoderEntryKind<'_>) -> bool {
        self.protocol == OutputProtocol::Legacy && kind == EncoderEntryKind::Event("completed")
    }
}
