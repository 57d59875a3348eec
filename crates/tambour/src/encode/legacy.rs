//! Encoder of the output protocol `legacy`: raw reply text as it arrives, and the whole reply at the end
//! (J-032).

use std::borrow::Cow;

use super::jsonseq::write_completed;
use super::sse::{Envelope, write_frame};
use super::{json, jsonseq};
use crate::dialect::{self, escape_literals};
use crate::event::{Event, EventKind};

/// Appends the `content_delta` frame of a piece of raw reply text. `seq` counts the pieces of a message;
/// `number` is the number of the entry in the log.
pub fn write_content_delta(seq: u64, delta: &str, number: u64, envelope: &Envelope, out: &mut Vec<u8>) {
    write_frame("content_delta", Some(number), envelope, out, |out| {
        out.extend_from_slice(b"{\"seq\":");
        json::write_number(seq, out);
        out.extend_from_slice(b",\"delta\":");
        json::write_string(delta, out);
        out.push(b'}');
    });
}

/// Appends the frame of a system event, and nothing for other events. `completed` gets the whole raw `reply`,
/// for ThinkingML with minimal escapes, so that it passes the check of its structure.
pub fn write_event(event: &Event<'_>, reply: &str, number: u64, envelope: &Envelope, out: &mut Vec<u8>) {
    match event {
        Event::Completed(completed) => {
            write_frame("completed", Some(number), envelope, out, |out| {
                write_completed(completed, Some(&render_reply(&completed.metadata.dialect, reply)), out);
            });
        }
        event if event.kind() == EventKind::System => jsonseq::write_event(event, number, envelope, out),
        _ => {}
    }
}

/// Raw reply as `completed` shows it: ThinkingML with minimal escapes, other dialects unchanged.
pub(super) fn render_reply<'a>(dialect: &str, reply: &'a str) -> Cow<'a, str> {
    match dialect == dialect::THINKINGML {
        true => escape_literals(reply),
        false => reply.into(),
    }
}
