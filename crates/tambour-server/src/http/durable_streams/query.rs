//! Query of a Durable Streams read: view, offset, live mode, cursor.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::Query;
use axum::http::{StatusCode, Uri};

use crate::base::problem::Problem;

/// Number of digits of an offset. With a fixed length, offsets sort as text in the order of their numbers.
const OFFSET_DIGITS: usize = 20;
/// Unix time in seconds at which the intervals of cursors start: 2024-10-09T00:00:00Z, as in the protocol.
const CURSOR_EPOCH: u64 = 1_728_432_000;
/// Length of an interval in seconds.
const CURSOR_INTERVAL: u64 = 20;
/// Maximum number of intervals by which a new cursor exceeds the one that the client repeats: an hour.
const MAX_CURSOR_STEP: u64 = 180;
/// Highest cursor that this server accepts; a higher one is ignored.
const MAX_CURSOR: u64 = 1 << 48;

/// Query of a read.
#[derive(Debug)]
pub(super) struct StreamQuery {
    pub(super) view: View,
    /// Offset of the read; `None` if the query has none.
    pub(super) offset: Option<StartOffset>,
    /// Mode of a live read; `None` for a catch-up read.
    pub(super) live: Option<LiveMode>,
    /// Cursor of the previous response, repeated by the client.
    pub(super) cursor: Option<u64>,
}

/// Content of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum View {
    /// Events as JSON.
    #[default]
    Events,
    /// Raw text of the reply.
    Text,
}

/// Offset at which a read starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StartOffset {
    /// After the entry with this number; 0 for the beginning.
    Number(u64),
    /// At the tail (`now`).
    Tail,
}

/// Way of waiting for messages that are not written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiveMode {
    LongPoll,
    Sse,
}

impl Default for StartOffset {
    fn default() -> StartOffset {
        StartOffset::Number(0)
    }
}

impl View {
    /// Returns the value of `view` in the query.
    pub(super) fn name(self) -> &'static str {
        match self {
            View::Events => "events",
            View::Text => "text",
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            View::Events => "application/json",
            View::Text => "text/plain; charset=utf-8",
        }
    }

    /// Builds a response body from messages. Those in JSON, separated by commas, become a list; text is
    /// unchanged.
    pub(super) fn wrap(self, messages: Vec<u8>) -> Vec<u8> {
        match self {
            View::Events => [b"[".as_slice(), &messages, b"]"].concat(),
            View::Text => messages,
        }
    }
}

impl StreamQuery {
    /// Parses the query of a request. Unknown fields are ignored, as the protocol requires.
    ///
    /// # Errors
    /// A field is malformed or repeated, or a live read has no offset.
    pub(super) fn parse(uri: &Uri) -> Result<StreamQuery, Problem> {
        let Query(fields) = Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|_| malformed("the query cannot be read".to_owned()))?;
        let find = |name: &str| {
            let mut values =
                fields.iter().filter(|(field, _)| field == name).map(|(_, value)| value.as_str());
            match (values.next(), values.next()) {
                (value, None) => Ok(value),
                (_, Some(_)) => Err(malformed(format!("`{name}` is given more than once"))),
            }
        };
        let view = match find("view")? {
            None | Some("events") => View::Events,
            Some("text") => View::Text,
            Some(_) => return Err(malformed("`view` is `events` or `text`".to_owned())),
        };
        let live = match find("live")? {
            None => None,
            Some("long-poll") => Some(LiveMode::LongPoll),
            Some("sse") => Some(LiveMode::Sse),
            Some(_) => return Err(malformed("`live` is `long-poll` or `sse`".to_owned())),
        };
        let offset = find("offset")?.map(parse_offset).transpose()?;
        if live.is_some() && offset.is_none() {
            let detail = "a live read needs an `offset`, such as `-1` for the beginning".to_owned();
            return Err(malformed(detail));
        }
        let cursor = find("cursor")?.and_then(|cursor| cursor.parse().ok());
        Ok(StreamQuery { view, offset, live, cursor: cursor.filter(|cursor| *cursor <= MAX_CURSOR) })
    }
}

/// Problem: the query is malformed.
fn malformed(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "malformed_request", detail)
}

/// Problem: the offset is not one that a response has given.
pub(super) fn unknown_offset(offset: &str) -> Problem {
    let detail = format!(
        "an offset is `-1`, `now` or the `Stream-Next-Offset` of a response, not `{}`",
        offset.chars().take(64).collect::<String>()
    );
    Problem::new(StatusCode::BAD_REQUEST, "malformed_cursor", detail)
}

fn parse_offset(offset: &str) -> Result<StartOffset, Problem> {
    match offset {
        "-1" => Ok(StartOffset::Number(0)),
        "now" => Ok(StartOffset::Tail),
        _ if offset.len() == OFFSET_DIGITS && offset.bytes().all(|byte| byte.is_ascii_digit()) => {
            offset.parse().map(StartOffset::Number).map_err(|_| unknown_offset(offset))
        }
        _ => Err(unknown_offset(offset)),
    }
}

/// Returns the offset after the entry with this number.
pub(super) fn format_offset(number: u64) -> String {
    format!("{number:0OFFSET_DIGITS$}")
}

/// Returns the cursor of a response: the number of the current interval, or a higher one than the client
/// repeats, so that a cache between client and server never repeats one response forever.
pub(super) fn next_cursor(repeated: Option<u64>) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let interval = now.saturating_sub(CURSOR_EPOCH) / CURSOR_INTERVAL;
    match repeated.filter(|repeated| *repeated >= interval) {
        Some(repeated) => {
            let step = uuid::Uuid::new_v4().as_u128() % u128::from(MAX_CURSOR_STEP);
            repeated + 1 + u64::try_from(step).unwrap_or(0)
        }
        None => interval,
    }
}

#[cfg(test)]
mod tests {
    use super::{StartOffset, format_offset, next_cursor, parse_offset};

    #[test]
    fn offsets_are_read_as_written_and_in_order() {
        let numbers = [0, 1, 9, 10, 4_000_000_000, u64::MAX];
        let offsets = numbers.map(format_offset);
        assert!(offsets.is_sorted());
        for (number, offset) in numbers.into_iter().zip(&offsets) {
            assert_eq!(parse_offset(offset).unwrap(), StartOffset::Number(number));
        }
    }

    #[test]
    fn a_repeated_cursor_moves_on() {
        let current = next_cursor(None);
        assert!(next_cursor(Some(0)) >= current);
        for repeated in [current, current + 1000] {
            assert!(next_cursor(Some(repeated)) > repeated);
        }
    }
}
