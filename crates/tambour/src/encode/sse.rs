//! Frames of Server-Sent Events: an optional `id:` line, one `event:` line, one `data:` line, a blank line
//! (J-034).

use super::json;

/// Fields that every event of a message carries in its data: `message_id` and `request_id` (J-030). Stored as
/// JSON, followed by the closing brace of the data.
#[derive(Clone, Debug)]
pub struct Envelope(Vec<u8>);

impl Envelope {
    /// Creates the envelope of one message.
    #[must_use]
    pub fn new(message_id: &str, request_id: &str) -> Envelope {
        let mut out = b"\"message_id\":".to_vec();
        json::write_string(message_id, &mut out);
        out.extend_from_slice(b",\"request_id\":");
        json::write_string(request_id, &mut out);
        out.push(b'}');
        Envelope(out)
    }
}

/// Bytes reserved for a short frame.
const SHORT_FRAME_LEN: usize = 320;

/// Appends one frame. `write_json` appends its data, a JSON object in one line, to which the envelope is
/// added. `id` is the number of the entry in the log.
#[inline]
pub fn write_frame(
    name: &str,
    id: Option<u64>,
    envelope: &Envelope,
    out: &mut Vec<u8>,
    write_json: impl FnOnce(&mut Vec<u8>),
) {
    if out.capacity() == 0 {
        // Reserves a short event at once, since growing step by step costs more than the writing.
        out.reserve(SHORT_FRAME_LEN);
    }
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        json::write_number(id, out);
        out.push(b'\n');
    }
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    write_json(out);
    let brace = out.pop();
    debug_assert_eq!(brace, Some(b'}'), "data is a JSON object");
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.extend_from_slice(&envelope.0);
    out.extend_from_slice(b"\n\n");
}

/// Appends a comment, which clients ignore; it keeps a connection open.
pub fn write_comment(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b": ");
    out.extend(text.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    out.extend_from_slice(b"\n\n");
}
