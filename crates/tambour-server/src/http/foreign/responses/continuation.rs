//! Requests that continue an earlier response: the model gets the earlier prompt and output before the new
//! input.

use std::collections::HashSet;

use serde_json::{Value, json};
use tambour::encode::responses;

use super::items::{content_text, items_to_messages};
use super::{ForeignRequest, describe_message, fold_message};
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::record;
use crate::record::history::{self, PromptOpening, PromptRecord};
use crate::store::MessageRow;
use crate::upstream::Message;

/// Returns the messages that the model was sent for a response, without the system prompt and the example.
pub(super) async fn prompt_messages(app: &App, row: &MessageRow) -> Result<Vec<Message>, Problem> {
    let (_, record) = record::stored_record(app, row).await?;
    let prompt_record: PromptRecord = serde_json::from_value(record["prompt"].clone()).unwrap_or_default();
    Ok(PromptRecord { opening: PromptOpening::default(), ..prompt_record }
        .load_messages(&*app.store, &app.reading_defaults())
        .await?)
}

/// Continues the response of `row` with new messages. If the response has no calls and is the last one of its
/// conversation, and all new messages are texts of the user, they become the next text of the conversation.
/// Otherwise, such as with results of calls, the request gets a complete prompt: that of the response, its
/// output, and the new messages.
pub(super) async fn continue_response(
    app: &App,
    row: &MessageRow,
    messages: Value,
    foreign_request: &mut ForeignRequest,
) -> Result<(), Problem> {
    if let Some(live_run) = app.running.get(&row.id) {
        live_run.wait_over().await;
    }
    foreign_request.set("conversation_id", row.conversation_id.as_str());
    let folded = fold_message(app, &row.id).await?;
    let messages = messages.as_array().cloned().unwrap_or_default();
    let is_user_text = messages
        .iter()
        .all(|input_message| input_message["role"] == "user" && input_message["content"].is_string());
    if is_user_text && folded.calls.is_empty() && is_last(app, row).await? {
        let texts = messages.iter().map(|input_message| content_text(&input_message["content"]));
        foreign_request.set("text", texts.collect::<Vec<String>>().join("\n\n"));
        return Ok(());
    }
    let mut prompt: Vec<Value> =
        prompt_messages(app, row).await?.iter().map(|message| json!(message)).collect();
    if folded.calls.is_empty() || !folded.results.is_empty() {
        // There are no calls, or the server ran them, since the log has results: calls and results are then
        // among the messages that the reply left in the history.
        let (_, record) = record::stored_record(app, row).await?;
        prompt.extend(history::reply_messages(&record).iter().map(|message| json!(message)));
    } else {
        // The client runs the calls. They are in the output, and their results in the new messages.
        let response = responses::response_from_log(&describe_message(row), &folded);
        if let Value::Array(output) = items_to_messages(response["output"].clone())? {
            prompt.extend(output);
        }
    }
    prompt.extend(messages);
    check_results(&prompt)?;
    foreign_request.set("messages", prompt);
    Ok(())
}

/// Returns `true` if no message of the conversation follows that of `row`.
async fn is_last(app: &App, row: &MessageRow) -> Result<bool, Problem> {
    // Read again: `row` may have been read before its message got a number.
    let row_now = app.store.message(&row.id).await?;
    let Some(number) = row_now.and_then(|row| row.number) else { return Ok(false) };
    Ok(app.store.conversation_messages(&row.conversation_id, number, 1, 1).await?.rows.is_empty())
}

/// Checks that each result of a tool belongs to a call before it.
fn check_results(messages: &[Value]) -> Result<(), Problem> {
    let mut call_ids = HashSet::new();
    for message in messages {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        call_ids.extend(calls.filter_map(|call| call["id"].as_str()));
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !call_ids.contains(id) {
                let detail = format!("the previous response has no call `{id}`");
                return Err(Problem::invalid("invalid_field", detail).with("field", "input"));
            }
        }
    }
    Ok(())
}
