//! Encoder of the output protocol `jsonseq_v1`: contract events, system events, and the extension events a
//! client asked for.

use serde::Serialize;
use serde_json::Value;

use super::json;
use super::sse::{Envelope, write_frame};
use crate::event::{Completed, Event, FinishReason, Metadata};

/// Appends the frame of one event. `number` is its number in the log of the message; `status` and `heartbeat`
/// do not carry it (J-036).
///
/// ```
/// use tambour::{Event, encode::{jsonseq, sse::Envelope}};
///
/// let mut out = Vec::new();
/// jsonseq::write_event(&Event::FinalEnd, 7, &Envelope::new("m1", "r1"), &mut out);
/// assert_eq!(
///     String::from_utf8_lossy(&out),
///     "id: 7\nevent: final_end\ndata: {\"message_id\":\"m1\",\"request_id\":\"r1\"}\n\n",
/// );
/// ```
#[inline]
pub fn write_event(event: &Event<'_>, number: u64, envelope: &Envelope, out: &mut Vec<u8>) {
    let id = (!matches!(event, Event::Status { .. } | Event::Heartbeat { .. })).then_some(number);
    write_frame(event.name(), id, envelope, out, |out| match event {
        // The raw reply is sent only in the legacy protocol.
        Event::Completed(completed) if completed.reply.is_some() => write_completed(completed, None, out),
        event => json::write_data(event, out),
    });
}

/// Appends the data of `completed`, with `reply` instead of [`Completed::reply`].
pub(super) fn write_completed(completed: &Completed, reply: Option<&str>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct CompletedFrame<'a> {
        usage: &'a Value,
        finish_reason: FinishReason,
        metadata: &'a Metadata,
        #[serde(skip_serializing_if = "Option::is_none")]
        reply: Option<&'a str>,
    }
    let Completed { usage, finish_reason, metadata, reply: _ } = completed;
    json::write_value(&CompletedFrame { usage, finish_reason: *finish_reason, metadata, reply }, out);
}
