//! Prompt of a new message: the messages or text of the request or a rendered Skein (a prompt of blocks), and
//! the system prompt. Timed lore consists of lore entries that stay active or inactive for a number of
//! messages; its state passes from turn to turn.

use std::sync::Arc;

use serde_json::json;
use tambour::{Options, dialect};
use tambour_prompt::lore::TimedEffects;

use super::NewMessage;
use crate::base::problem::Problem;
use crate::http::app::App;
use crate::http::keys::Caller;
use crate::record::history::{PromptOpening, PromptRecord};
use crate::run::skeins::{self, PromptSources, RenderSettings};
use crate::upstream::{Content, Message};

/// Builds the prompt of a request without a Skein from its messages or text.
pub(super) fn plain_prompt(new_message: &NewMessage) -> Result<PromptRecord, Problem> {
    let new_problem =
        |code, detail: &str, field: &'static str| Problem::invalid(code, detail).with("field", field);
    for (is_present, field) in [
        (!new_message.context.is_empty(), "context"),
        (new_message.max_context.is_some(), "max_context"),
        (new_message.timed.is_some(), "timed"),
    ] {
        if is_present {
            let detail =
                format!("`{field}` needs a prompt of blocks: give `skein`, `card_id` or `lorebook_ids`");
            return Err(new_problem("invalid_field", &detail, field));
        }
    }
    match (&new_message.messages, &new_message.text) {
        (Some(_), Some(_)) => {
            Err(new_problem("invalid_field", "give `messages` or `text`, not both", "text"))
        }
        (None, None) => Err(new_problem("missing_field", "give `messages` or `text`", "text")),
        (Some(messages), None) if messages.is_empty() => {
            Err(new_problem("invalid_field", "`messages` is empty", "messages"))
        }
        (Some(messages), None) => {
            if let Some((detail, missing_field)) = messages.iter().find_map(Message::find_fault) {
                let code = if missing_field.is_some() { "missing_field" } else { "invalid_field" };
                return Err(new_problem(code, &detail, missing_field.unwrap_or("messages")));
            }
            Ok(PromptRecord { messages: Some(messages.clone()), ..PromptRecord::default() })
        }
        (None, Some(text)) => Ok(PromptRecord { text: Some(text.clone()), ..PromptRecord::default() }),
    }
}

/// Returns `true` if a message is only text, which a template can print.
fn is_text(message: &Message) -> bool {
    let has_only_text = match &message.content {
        Some(Content::Text(_)) => true,
        Some(Content::Parts(parts)) => parts.iter().all(|part| part["type"] == "text"),
        None => false,
    };
    has_only_text && message.tool_calls.is_empty() && message.tool_call_id.is_none()
}

/// Renders the Skein of a message. The messages or text of the request end its history. Also returns the
/// state of timed lore if it has changed or the request contains it.
pub(super) async fn rendered_prompt(
    app: &Arc<App>,
    caller: &Caller,
    new_message: &NewMessage,
) -> Result<(PromptRecord, Option<TimedEffects>), Problem> {
    let new_problem =
        |detail: &str, field: &'static str| Problem::invalid("invalid_field", detail).with("field", field);
    let mut context = new_message.context.clone();
    let history = context.entry("history").or_insert_with(|| json!([]));
    let Some(history) = history.as_array_mut() else {
        return Err(new_problem("`history` of a context must be a list of messages", "context"));
    };
    match (&new_message.messages, &new_message.text) {
        (Some(_), Some(_)) => return Err(new_problem("give `messages` or `text`, not both", "text")),
        (None, Some(text)) => history.push(json!({"role": "user", "content": text})),
        (Some(messages), None) => {
            for message in messages {
                if let Some((detail, missing_field)) = message.find_fault() {
                    return Err(new_problem(&detail, missing_field.unwrap_or("messages")));
                }
                if !is_text(message) {
                    let detail = "with a prompt of blocks, `messages` must be texts without tool calls";
                    return Err(new_problem(detail, "messages"));
                }
                let mut history_message = json!({"role": message.role, "content": message.text()});
                if let Some(name) = &message.name {
                    history_message["name"] = name.as_str().into();
                }
                history.push(history_message);
            }
        }
        (None, None) => {}
    }
    let timed_effects = match (&new_message.timed, &new_message.conversation_id) {
        (Some(timed_effects), _) => timed_effects.clone(),
        (None, Some(id)) => load_timed(app, caller, id).await?,
        (None, None) => TimedEffects::default(),
    };
    let parts = PromptSources {
        skein: new_message.skein.clone(),
        card: new_message.card_id.clone(),
        books: new_message.lorebook_ids.clone(),
        context,
        timed: timed_effects.clone(),
    };
    let settings = RenderSettings { max_context: new_message.max_context, ..RenderSettings::default() };
    let rendering = skeins::render(app, &caller.owner, parts, settings).await?;
    let messages: Vec<Message> = rendering
        .messages
        .iter()
        .map(|message| Message::new(&message.role, message.content.as_str()))
        .collect();
    if messages.is_empty() {
        return Err(new_problem("the prompt renders to nothing", "skein"));
    }
    if let Some((detail, _)) = messages.iter().find_map(Message::find_fault) {
        return Err(new_problem(&format!("the rendered prompt cannot be sent: {detail}"), "context"));
    }
    let changed_effects = (rendering.timed_effects != timed_effects || new_message.timed.is_some())
        .then_some(rendering.timed_effects);
    Ok((PromptRecord { messages: Some(messages), ..PromptRecord::default() }, changed_effects))
}

/// Returns the state of timed lore of a conversation. If the stored state cannot be read, logs this and
/// returns an empty state.
///
/// # Errors
/// The conversation is not the caller's.
async fn load_timed(app: &App, caller: &Caller, conversation: &str) -> Result<TimedEffects, Problem> {
    let conversation_row = app.store.conversation(conversation).await?;
    if conversation_row.is_none_or(|row| row.owner != caller.owner) {
        return Err(Problem::not_found(format!("there is no conversation `{conversation}`")));
    }
    let Some(timed_effects) = app.store.timed_effects(conversation).await? else {
        return Ok(TimedEffects::default());
    };
    Ok(serde_json::from_str(&timed_effects).unwrap_or_else(|error| {
        tracing::error!(%error, conversation, "the state of world info cannot be read; it starts over");
        TimedEffects::default()
    }))
}

/// Builds the opening of the prompt: the system prompt of the request, then the format instructions of the
/// dialect, if wanted.
pub(super) fn prompt_opening(
    new_message: &NewMessage,
    options: &mut Options,
) -> Result<PromptOpening, Problem> {
    if !new_message.instructions {
        return Ok(PromptOpening { system: new_message.system_prompt.clone(), example: None });
    }
    let prompt = dialect::find_dialect(&new_message.dialect).ok().and_then(|entry| entry.prompt);
    let Some(prompt) = prompt else {
        let detail = format!("the dialect `{}` has no instructions; name one that has", new_message.dialect);
        return Err(Problem::invalid("invalid_field", detail).with("field", "instructions"));
    };
    // A model that only repeats the example of the instructions has not answered.
    options.has_own_examples = true;
    let instructions = prompt(options).messages();
    let texts = new_message.system_prompt.iter().map(String::as_str).chain([&*instructions.system]);
    let system = texts.collect::<Vec<&str>>().join("\n\n");
    Ok(PromptOpening { system: Some(system), example: instructions.example })
}
