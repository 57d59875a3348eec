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

/// Most characters of the text.
const MAX_QUERY_CHARS: usize = 200;
/// Most conversations scanned by one request.
const MAX_CONVERSATIONS: usize = 1000;
/// Approximate bytes of messages read by one request.
const MAX_SCAN_BYTES: usize = 32 << 20;
/// Time after which the scan stops.
const MAX_SCAN_TIME: Duration = Duration::from_secs(2);
/// Rows read at a time, and bytes of them.
const ROWS_PER_READ: u32 = 50;
const BYTES_PER_READ: usize = 2 << 20;
/// Fewest characters to search for in ids.
const MIN_ID_CHARS: usize = 8;
/// Characters shown on either side of a match.
const EXCERPT_CHARS: usize = 60;

/// Searched texts of a message: the request and the answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SearchedTexts {
    text: Option<String>,
    messages: Vec<Message>,
    answer: Option<String>,
}

/// Scans the conversations of an owner, newest first. `next` is the `after` of the following request, if more
/// remain.
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
    let (mut data, mut messages_searched, mut bytes_read) = (Vec::new(), 0, 0);
    let (began, mut after) = (Instant::now(), after.map(str::to_owned));
    loop {
        let page = app.store.conversations(owner, after.as_deref(), ROWS_PER_READ).await?;
        for row in page.rows {
            let is_over = messages_searched >= MAX_CONVERSATIONS
                || bytes_read >= MAX_SCAN_BYTES
                || began.elapsed() >= MAX_SCAN_TIME;
            // At least one conversation is scanned, so that the next request begins later.
            if data.len() >= limit as usize || is_over && messages_searched > 0 {
                return Ok(search_page(RowPage { rows: data, has_more: true }, after.as_deref()));
            }
            messages_searched += 1;
            if let Some(found) = find_in_conversation(app, &row, &query, &mut bytes_read).await? {
                let mut hit = conversation_json(&row);
                hit["found"] = found;
                data.push(hit);
            }
            after = Some(row.id);
        }
        if !page.has_more {
            return Ok(search_page(RowPage { rows: data, has_more: false }, None));
        }
    }
}

fn search_page(page: RowPage<Value>, next: Option<&str>) -> Value {
    let mut answer = page::page_json(page, |hit| hit);
    answer["next"] = json!(next);
    answer
}

/// Finds a text in a conversation: its id, its title, or its first current message that contains it.
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

fn row_bytes(row: &MessageRow) -> usize {
    row.request.len() + row.outcome.as_ref().map_or(0, |outcome| outcome.summary.len())
}

/// Returns `true` if a text is a long part of an id, hardly meant as words.
fn is_part_of_id(id: &str, query: &str) -> bool {
    query.len() >= MIN_ID_CHARS && id.contains(query)
}

/// Finds a text in a message.
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

/// Returns the text around the first match, ignoring case.
fn excerpt(text: &str, query: &str) -> Option<String> {
    let lowercase = text.to_lowercase();
    let at = lowercase.find(query)?;
    // Lower-case letters may have another length, so characters are counted, not bytes.
    let before = lowercase[..at].chars().count();
    let (from, length) = (before.saturating_sub(EXCERPT_CHARS), query.chars().count() + 2 * EXCERPT_CHARS);
    let excerpt_text: String = text.chars().skip(from).take(length).collect();
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
