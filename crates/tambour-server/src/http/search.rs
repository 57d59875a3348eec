//! Text search in conversations: id, title and messages. One request scans a bounded part of them.

use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::conversations::conversation_json;
use super::page;
use crate::base::cpu_pool::run_in_place;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::store::{ConversationRow, MessageRow, RowPage};
use crate::upstream::Message;

/// Maximum length in characters of the text to search for.
const MAX_QUERY_CHARS: usize = 200;
/// Maximum number of conversations scanned by one request.
const MAX_CONVERSATIONS: usize = 1000;
/// Approximate maximum size in bytes of the messages read by one request.
const MAX_SCAN_BYTES: usize = 32 << 20;
/// Time after which the scan stops.
const MAX_SCAN_TIME: Duration = Duration::from_secs(2);
/// Maximum number of rows read at a time.
const ROWS_PER_READ: u32 = 50;
/// Approximate maximum size in bytes of the messages read at a time.
const BYTES_PER_READ: usize = 2 << 20;
/// Minimum length in bytes of a text that is searched for in ids.
const MIN_ID_BYTES: usize = 8;
/// Characters shown on either side of a match.
const EXCERPT_CHARS: usize = 60;

/// Searched texts of a message, parsed from the JSON of its request or of the summary of its outcome.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SearchedTexts {
    /// Text of the request.
    text: Option<String>,
    /// Messages of the request.
    messages: Vec<Message>,
    /// Answer in the summary.
    answer: Option<String>,
}

/// Scans the conversations of an owner, newest first, beginning after the one with the id `after`. If some
/// remain, `next` in the result is the `after` of the following request.
pub(super) async fn search(
    app: &App,
    owner: &str,
    text: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Value, Problem> {
    let query = text.trim().to_lowercase();
    if !(1..=MAX_QUERY_CHARS).contains(&query.chars().count()) {
        let detail = format!("`q` must be a text of 1 to {MAX_QUERY_CHARS} characters");
        return Err(Problem::invalid("invalid_field", detail).with("field", "q"));
    }
    let (mut hits, mut conversations_searched, mut bytes_read) = (Vec::new(), 0, 0);
    let (start_time, mut after) = (Instant::now(), after.map(str::to_owned));
    loop {
        let page = app.store.conversations(owner, after.as_deref(), ROWS_PER_READ).await?;
        for row in page.rows {
            let has_scanned_enough = conversations_searched >= MAX_CONVERSATIONS
                || bytes_read >= MAX_SCAN_BYTES
                || start_time.elapsed() >= MAX_SCAN_TIME;
            // At least one conversation is scanned, so that `next` advances with every request.
            if hits.len() >= limit as usize || (has_scanned_enough && conversations_searched > 0) {
                return Ok(search_page(RowPage { rows: hits, has_more: true }, after.as_deref()));
            }
            conversations_searched += 1;
            if let Some(found) = find_in_conversation(app, &row, &query, &mut bytes_read).await? {
                let mut hit = conversation_json(&row);
                hit["found"] = found;
                hits.push(hit);
            }
            after = Some(row.id);
        }
        if !page.has_more {
            return Ok(search_page(RowPage { rows: hits, has_more: false }, None));
        }
    }
}

fn search_page(page: RowPage<Value>, next: Option<&str>) -> Value {
    let mut response = page::page_json(page, |hit| hit);
    response["next"] = json!(next);
    response
}

/// Finds a text in a conversation: in its id, in its title, or in the first message that contains it. Adds
/// the number of bytes read to `bytes_read`, and gives up when that reaches `MAX_SCAN_BYTES`.
async fn find_in_conversation(
    app: &App,
    row: &ConversationRow,
    query: &str,
    bytes_read: &mut usize,
) -> Result<Option<Value>, Problem> {
    if is_part_of_id(&row.id, query) {
        return Ok(Some(json!({ "in": "id", "excerpt": row.id })));
    }
    if let Some(excerpt) = row.title.as_deref().and_then(|title| excerpt(title, query)) {
        return Ok(Some(json!({ "in": "title", "excerpt": excerpt })));
    }
    let mut after = 0;
    loop {
        let page = app.store.conversation_messages(&row.id, after, ROWS_PER_READ, BYTES_PER_READ).await?;
        let bytes = page.rows.iter().map(row_bytes).sum::<usize>();
        *bytes_read = bytes_read.saturating_add(bytes);
        let found = run_in_place(|| page.rows.iter().find_map(|row| find_in_message(row, query)));
        let last = page.rows.last().and_then(|row| row.number);
        if found.is_some() || !page.has_more || *bytes_read >= MAX_SCAN_BYTES {
            return Ok(found);
        }
        let Some(last) = last else { return Ok(None) };
        after = last;
    }
}

/// Returns the size in bytes of the searched parts of a message.
fn row_bytes(row: &MessageRow) -> usize {
    row.request.len() + row.outcome.as_ref().map_or(0, |outcome| outcome.summary.len())
}

/// Returns `true` if a text is part of an id. A short text does not count: common words may occur in ids by
/// chance.
fn is_part_of_id(id: &str, query: &str) -> bool {
    query.len() >= MIN_ID_BYTES && id.contains(query)
}

/// Finds a text in a message: in its id, or in its request or answer unless another message has superseded
/// it.
fn find_in_message(row: &MessageRow, query: &str) -> Option<Value> {
    if is_part_of_id(&row.id, query) {
        return Some(json!({ "in": "id", "message_id": row.id, "excerpt": row.id }));
    }
    if row.status == "superseded" {
        return None;
    }
    let parse_texts = |text: &str| serde_json::from_str::<SearchedTexts>(text).unwrap_or_default();
    let (request_texts, reply_texts) =
        (parse_texts(&row.request), row.outcome.as_ref().map(|outcome| parse_texts(&outcome.summary)));
    let request_texts =
        request_texts.text.into_iter().chain(request_texts.messages.iter().map(Message::text));
    let request_texts = request_texts.map(|text| ("request", text));
    let reply_texts = reply_texts.and_then(|reply_texts| reply_texts.answer).map(|text| ("answer", text));
    request_texts.chain(reply_texts).find_map(|(place, text)| {
        let excerpt = excerpt(&text, query)?;
        Some(json!({ "in": place, "message_id": row.id, "excerpt": excerpt }))
    })
}

/// Returns the text around the first match, ignoring case; `None` without a match. `query` is in lower case.
fn excerpt(text: &str, query: &str) -> Option<String> {
    let lowercase = text.to_lowercase();
    let match_start = lowercase.find(query)?;
    // A letter and its lower case may differ in bytes, so the place of the match is counted in characters.
    let chars_before = lowercase[..match_start].chars().count();
    let first_char = chars_before.saturating_sub(EXCERPT_CHARS);
    let length = query.chars().count() + 2 * EXCERPT_CHARS;
    let excerpt_text: String = text.chars().skip(first_char).take(length).collect();
    Some(excerpt_text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_cut_around_the_text() {
        assert_eq!(excerpt("Grüße aus KÖLN", "köln").as_deref(), Some("Grüße aus KÖLN"));
        assert_eq!(excerpt("x", "y"), None);
        let long = format!("{}needle{}", "ä ".repeat(500), " ö".repeat(500));
        let found = excerpt(&long, "needle").unwrap();
        assert!(found.contains("needle") && found.chars().count() < 150, "{found}");
    }
}
