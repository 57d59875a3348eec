//! JSON of events. Most of a stream is deltas, so they are written directly, without a tree of values.

use serde::Serialize;

use crate::event::Event;

/// Appends the data of an event as a JSON object.
#[inline]
pub fn write_data(event: &Event<'_>, out: &mut Vec<u8>) {
    match event {
        Event::FinalDelta { text } | Event::SerpSummary { text } | Event::DraftDelta { text } => {
            out.extend_from_slice(b"{\"text\":");
            write_string(text, out);
            out.push(b'}');
        }
        Event::PhaseDelta { id, text } => {
            out.extend_from_slice(b"{\"id\":");
            write_number(u64::from(*id), out);
            out.extend_from_slice(b",\"text\":");
            write_string(text, out);
            out.push(b'}');
        }
        Event::ThinkingStart | Event::ThinkingEnd | Event::FinalEnd => out.extend_from_slice(b"{}"),
        Event::Completed(completed) => write_value(completed, out),
        Event::Error(failure) => write_value(failure, out),
        Event::Finding(finding) => write_value(finding, out),
        other => write_value(&other.data(), out),
    }
}

/// Appends any value as JSON.
pub(super) fn write_value(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value)
        .expect("event data has string keys, and writing to memory does not fail");
}

/// Appends a number in decimal digits.
pub fn write_number(mut number: u64, out: &mut Vec<u8>) {
    // The largest number has 20 digits.
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends a JSON string. All characters that could end a line are escaped, so that it fits an SSE `data:`
/// line (J-034).
#[inline]
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut unwritten_start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[unwritten_start..at]);
        unwritten_start = at + 1;
        write_escape(byte, out);
    }
    out.extend_from_slice(&bytes[unwritten_start..]);
    out.push(b'"');
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        _ => {
            out.extend_from_slice(b"\\u00");
            out.push(HEX[usize::from(byte >> 4)]);
            out.push(HEX[usize::from(byte & 15)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}
