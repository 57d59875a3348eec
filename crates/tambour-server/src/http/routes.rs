//! Table of operations, from which both the router and the OpenAPI description are built.

use axum::routing::{MethodRouter, delete, get, patch, post, put};

use super::foreign::{ag_ui, ai_sdk, anthropic, chat, models, responses};
use super::idempotency::{self, ResponseStorage};
use super::{
    cards, conversations, decode, dialogue_turns, dialogues, events, figures, imports, keys, messages,
    openapi, play, prompts, record, rules, scripts, services, settings, states, templates, tool_answers,
    tool_calls, tools, usage, versions,
};
use crate::http::app::AppState;

/// Operation of the interface.
pub(super) struct ApiOperation {
    /// `get`, `post`, `put`, `patch` or `delete`.
    pub(super) method: &'static str,
    /// Path, with `{id}` for an id and `{name}` for a name.
    pub(super) path: &'static str,
    /// Summary in a few words.
    pub(super) summary: &'static str,
    /// Schema of the body.
    pub(super) request: Option<&'static str>,
    /// Status of a successful response.
    pub(super) status: &'static str,
    /// Content of a successful response.
    pub(super) response: ResponseContent,
    /// Storage of its response for requests repeated with the same `Idempotency-Key`, if it creates
    /// something.
    pub(super) stored_response: Option<ResponseStorage>,
    /// Handler.
    pub(super) handler: fn() -> MethodRouter<AppState>,
}

/// Content of a successful response.
pub(super) enum ResponseContent {
    /// JSON of this schema.
    Json(&'static str),
    /// Server-Sent Events.
    Events,
    /// Page, script or text.
    Text(&'static str),
    /// No content.
    Empty,
}

use ResponseContent::{Empty, Events, Json, Text};

const fn first_keep(settings: &[ResponseStorage]) -> Option<ResponseStorage> {
    match settings {
        [setting] => Some(*setting),
        _ => None,
    }
}

macro_rules! operations {
    ($($method:ident $path:literal $summary:literal $request:expr, $status:literal $answer:expr, $handler:expr $(, $keep:expr)?;)+) => {
        &[$(ApiOperation {
            method: stringify!($method),
            path: $path,
            summary: $summary,
            request: $request,
            status: $status,
            response: $answer,
            stored_response: first_keep(&[$($keep)?]),
            handler: || $method($handler),
        }),+]
    };
}

const TEXT_PLAIN: &str = "text/plain";
const JSON_LINES: &str = "application/jsonl";
const YAML: &str = "application/yaml";
const METRICS: &str = "application/openmetrics-text";
const HTML: &str = "text/html";
const SCRIPT: &str = "text/javascript";

impl ApiOperation {
    /// Returns `true` if the operation requires a key.
    pub(super) fn needs_key(&self) -> bool {
        ["/api/", "/v1/", "/ag-ui"].iter().any(|start| self.path.starts_with(start))
    }
}

/// All operations.
pub(super) const OPERATIONS: &[ApiOperation] = operations! {
    post "/api/v1/messages" "Ask a model" Some("NewMessage"), "202" Json("Accepted"), messages::create;
    get "/api/v1/messages/{id}" "The record of a message" None, "200" Json("Record"), record::show;
    delete "/api/v1/messages/{id}" "Delete a message with its log" None, "204" Empty, record::remove;
    get "/api/v1/messages/{id}/events" "Follow a message" None, "200" Events, events::follow;
    post "/api/v1/messages/{id}/stream_tokens" "Get a token for `?token=` of the event stream" None, "201" Json("StreamToken"), keys::create_token, idempotency::TOKEN_RESPONSE;
    post "/api/v1/messages/{id}/cancel" "Stop a message and its upstream call" None, "202" Json("Cancelled"), messages::cancel;
    post "/api/v1/messages/{id}/regenerate" "Regenerate a message: another one takes its place" None, "202" Json("Accepted"), messages::regenerate, ResponseStorage::Stored;
    post "/api/v1/messages/{id}/tool_results" "Send results of calls that the client runs" Some("ToolResults"), "200" Json("Taken"), tool_answers::post_results;
    post "/api/v1/messages/{id}/tool_confirmations" "Allow or deny calls that wait for a confirmation" Some("ToolConfirmations"), "200" Json("Taken"), tool_answers::post_confirmations;
    post "/api/v1/decode" "Decode one reply to events" Some("Decode"), "200" Json("Decoded"), decode::decode;
    post "/api/v1/check" "Check one reply against its contract" Some("Check"), "200" Json("Checked"), decode::check;
    get "/api/v1/rules" "Rules that findings name" None, "200" Json("Rules"), rules::list;
    get "/api/v1/rules/{name}" "Rules of a code or a row, with a broken and a correct example" None, "200" Json("ExplainedRules"), rules::show;
    get "/api/v1/settings" "Settings" None, "200" Json("Settings"), settings::show;
    get "/api/v1/upstreams" "Configured upstreams and aliases, without secrets" None, "200" Json("Upstreams"), services::list_upstreams;
    post "/api/v1/upstreams/{name}/test" "Ask an upstream for a few tokens, to see whether it answers" None, "200" Json("UpstreamTest"), services::test_upstream;
    post "/api/v1/aliases/{name}/test" "Ask the upstream of an alias for a few tokens of its model, to see whether it answers" None, "200" Json("AliasTest"), services::test_alias;
    get "/api/v1/mcp" "MCP servers: their connections and tools" None, "200" Json("McpServers"), services::list_mcp;
    put "/api/v1/settings" "Change settings" Some("SettingsChange"), "200" Json("Settings"), settings::change;
    get "/api/v1/conversations" "Conversations, newest first" None, "200" Json("Conversations"), conversations::list;
    post "/api/v1/conversations" "Begin a conversation" Some("NewConversation"), "201" Json("Conversation"), conversations::create, ResponseStorage::Stored;
    get "/api/v1/conversations/{id}" "A conversation and its messages, oldest first" None, "200" Json("Conversation"), conversations::show;
    patch "/api/v1/conversations/{id}" "Change title and metadata" Some("NewConversation"), "200" Json("Conversation"), conversations::change;
    delete "/api/v1/conversations/{id}" "Delete a conversation with its messages" None, "204" Empty, conversations::remove;
    get "/api/v1/conversations/{id}/export" "A conversation as JSON Lines" None, "200" Text(JSON_LINES), conversations::export;
    get "/api/v1/conversations/{id}/state" "The state of a conversation, now or `?at=` a message" None, "200" Json("State"), states::show;
    get "/api/v1/conversations/{id}/state/history" "Updates of the state, oldest first; the difference with `?from=` and `?to=`" None, "200" Json("StateHistory"), states::history;
    put "/api/v1/conversations/{id}/state/schema" "Give the state a schema" Some("NewStateSchema"), "200" Json("StateSchema"), states::schema;
    post "/api/v1/conversations/{id}/state/operations" "Change the state" Some("NewOperations"), "200" Json("StateUpdate"), states::operations, ResponseStorage::Stored;
    post "/api/v1/conversations/{id}/state/rollback" "Roll the state back to a message" Some("Rollback"), "200" Json("RolledBack"), states::rollback;
    get "/api/v1/tools" "Registered tools, by name" None, "200" Json("Tools"), tools::list;
    get "/api/v1/tools/{name}" "A tool, without its secret" None, "200" Json("Tool"), tools::show;
    put "/api/v1/tools/{name}" "Register a tool, or replace one" Some("Definition"), "200" Json("Tool"), tools::put;
    delete "/api/v1/tools/{name}" "Remove a tool" None, "204" Empty, tools::remove;
    post "/api/v1/tools/{name}/calls" "Call a tool without a model" Some("NewToolCall"), "200" Json("ToolCallResult"), tool_calls::call, ResponseStorage::Stored;
    get "/api/v1/scripts" "Scripts, by id" None, "200" Json("Scripts"), scripts::list;
    post "/api/v1/scripts" "Store a script and publish it, or only store it with `?draft=true`" Some("NewScript"), "201" Json("StoredScript"), scripts::create, ResponseStorage::Stored;
    post "/api/v1/scripts/validate" "Errors and warnings of a script" Some("ScriptText"), "200" Json("Validated"), scripts::validate;
    get "/api/v1/scripts/{id}" "A script: its published version, or `?version=`" None, "200" Json("Script"), scripts::show;
    put "/api/v1/scripts/{id}" "Store the next version of a script" Some("NewScript"), "200" Json("StoredScript"), scripts::put;
    delete "/api/v1/scripts/{id}" "Remove a script with its versions" None, "204" Empty, scripts::remove;
    post "/api/v1/scripts/{id}/replay" "Run a test of a script, without a model" Some("NewReplay"), "200" Json("Replayed"), dialogue_turns::replay;
    post "/api/v1/scripts/{id}/publish" "Publish a version" Some("Publish"), "200" Json("Object"), versions::publish_script;
    get "/api/v1/scripts/{id}/versions" "Versions of a script, newest first" None, "200" Json("Versions"), versions::script_versions;
    get "/api/v1/scripts/{id}/diff" "Difference between the versions `?from=` and `?to=`" None, "200" Json("Diff"), versions::script_diff;
    get "/api/v1/templates" "Prompt templates, by id" None, "200" Json("Templates"), templates::list;
    get "/api/v1/templates/{name}" "A template in the version that is used" None, "200" Json("Template"), templates::show;
    put "/api/v1/templates/{name}" "Store the next version of a template" Some("NewTemplate"), "200" Json("StoredTemplate"), templates::put;
    delete "/api/v1/templates/{name}" "Delete a stored template with its versions" None, "204" Empty, templates::remove;
    post "/api/v1/templates/{name}/publish" "Publish a version" Some("Publish"), "200" Json("Object"), versions::publish_template;
    get "/api/v1/templates/{name}/versions" "Versions of a template, newest first" None, "200" Json("Versions"), versions::template_versions;
    get "/api/v1/templates/{name}/diff" "Difference between the versions `?from=` and `?to=`" None, "200" Json("Diff"), versions::template_diff;
    get "/api/v1/dialogues" "Dialogues, newest first" None, "200" Json("Dialogues"), dialogues::list;
    post "/api/v1/dialogues" "Begin a dialogue" Some("NewDialogue"), "201" Json("Dialogue"), dialogues::create, ResponseStorage::Stored;
    get "/api/v1/dialogues/{id}" "A dialogue with its position" None, "200" Json("Dialogue"), dialogues::show;
    delete "/api/v1/dialogues/{id}" "Delete a dialogue with its trace" None, "204" Empty, dialogues::remove;
    post "/api/v1/dialogues/{id}/input" "Send input of the user, or the answer of the client" Some("NewInput"), "200" Json("Turn"), dialogues::input;
    get "/api/v1/dialogues/{id}/turns" "Inputs and their results, oldest first" None, "200" Json("DialogueTurns"), dialogue_turns::list;
    get "/api/v1/dialogues/{id}/turns/{turn}/events" "Follow a turn" None, "200" Events, events::follow_turn;
    post "/api/v1/dialogues/{id}/cancel" "Stop the running turn and its model call" None, "202" Json("CancelledTurn"), dialogues::cancel;
    get "/api/v1/dialogues/{id}/trace" "Model calls, oldest first" None, "200" Json("Trace"), dialogues::trace;
    post "/api/v1/dialogues/{id}/forks" "Start another dialogue from the state before a turn" Some("NewFork"), "201" Json("Dialogue"), dialogue_turns::fork, ResponseStorage::Stored;
    post "/api/v1/dialogues/{id}/play" "Let a dialogue play by itself, with given or invented answers" Some("NewPlay"), "200" Json("Played"), play::play;
    get "/api/v1/dialogues/{id}/coverage" "Parts of the session that a dialogue has reached" None, "200" Json("Coverage"), dialogue_turns::coverage;
    get "/api/v1/dialogues/{id}/test" "Export a dialogue as a test of its script" None, "200" Text(YAML), dialogue_turns::test;
    post "/api/v1/imports" "Import cards and lorebooks: all files or none" Some("NewImports"), "201" Json("Imports"), imports::create, ResponseStorage::Stored;
    get "/api/v1/cards" "Imported cards, newest first" None, "200" Json("Cards"), cards::list_cards;
    get "/api/v1/cards/{id}" "A card as it was read, or as a file with `?format=v3` or `?format=original`" None, "200" Json("Card"), cards::show_card;
    delete "/api/v1/cards/{id}" "Remove a card with its file" None, "204" Empty, cards::remove_card;
    get "/api/v1/lorebooks" "Imported lorebooks, newest first" None, "200" Json("Lorebooks"), cards::list_books;
    get "/api/v1/lorebooks/{id}" "A lorebook as it was read, or as a file with `?format=v3` or `?format=original`" None, "200" Json("Lorebook"), cards::show_book;
    delete "/api/v1/lorebooks/{id}" "Remove a lorebook with its file" None, "204" Empty, cards::remove_book;
    post "/api/v1/prompts/render" "Render a prompt without asking a model" Some("RenderPrompt"), "200" Json("RenderedPrompt"), prompts::render_preview;
    post "/api/v1/macros/migrate" "Convert macros of other programs to a template" Some("MigrateMacros"), "200" Json("MigratedMacros"), prompts::migrate_macros;
    get "/api/v1/keys" "Keys, without secrets" None, "200" Json("Keys"), keys::list;
    post "/api/v1/keys" "Make a key; its secret is only in this response" Some("NewKey"), "201" Json("Key"), keys::create, idempotency::SECRET_RESPONSE;
    patch "/api/v1/keys/{id}" "Change name and limits of a key" Some("KeyChange"), "200" Json("Key"), keys::change;
    delete "/api/v1/keys/{id}" "Remove a key" None, "204" Empty, keys::remove;
    get "/api/v1/figures" "Figures of replies over time: how they ended, repairs, first text, tokens and cost" None, "200" Json("Figures"), figures::show;
    get "/api/v1/usage" "Usage of each key by day, newest first" None, "200" Json("Usage"), usage::show;
    post "/v1/chat/completions" "OpenAI Chat Completions" Some("Object"), "200" Json("Object"), chat::complete;
    get "/v1/models" "OpenAI: aliases and upstreams as models" None, "200" Json("Object"), models::list;
    get "/v1/models/{*name}" "OpenAI: one model" None, "200" Json("Object"), models::show;
    post "/v1/responses" "OpenAI Responses" Some("Object"), "200" Json("Object"), responses::create;
    get "/v1/responses/{id}" "OpenAI: a response, or its events from a number on" None, "200" Json("Object"), responses::show;
    delete "/v1/responses/{id}" "OpenAI: delete a response" None, "200" Json("Object"), responses::remove;
    get "/v1/responses/{id}/input_items" "OpenAI: input items of a response" None, "200" Json("Object"), responses::input_items;
    post "/v1/responses/{id}/cancel" "OpenAI: stop a response" None, "200" Json("Object"), responses::cancel;
    post "/v1/messages" "Anthropic Messages" Some("Object"), "200" Json("Object"), anthropic::create;
    post "/v1/messages/count_tokens" "Anthropic: estimated number of tokens of a request" Some("Object"), "200" Json("Object"), anthropic::count_tokens;
    post "/api/chat" "Vercel AI SDK: a UI message stream" Some("Object"), "200" Events, ai_sdk::chat;
    get "/api/chat/{id}/stream" "Vercel AI SDK: the stream of the running message" None, "200" Events, ai_sdk::resume_stream;
    post "/api/chat/{id}/stop" "Vercel AI SDK: stop the running message" None, "200" Json("Object"), ai_sdk::stop;
    post "/ag-ui" "AG-UI: a run" Some("Object"), "200" Events, ag_ui::run_agent;
    get "/healthz" "Liveness of the process" None, "200" Text(TEXT_PLAIN), super::show_health;
    get "/readyz" "Readiness for requests" None, "200" Text(TEXT_PLAIN), super::show_ready;
    get "/metrics" "Counters and times, OpenMetrics text" None, "200" Text(METRICS), super::show_metrics;
    get "/openapi.json" "This description" None, "200" Json("Object"), openapi::document;
    get "/docs" "This description as a readable page" None, "200" Text(HTML), openapi::page;
    get "/docs.js" "The script of the readable page" None, "200" Text(SCRIPT), openapi::script;
    get "/" "The studio" None, "200" Text(HTML), crate::http::studio::serve_home;
};
