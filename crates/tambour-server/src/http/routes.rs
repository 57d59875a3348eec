//! The one table of operations: the router is made from it, and so is the description of the interface.

use axum::routing::{MethodRouter, delete, get, patch, post, put};

use super::{answers, conversations, decode, events, keys, messages, openapi, record, settings, tools};
use crate::app::AppState;

/// One operation of the interface.
pub(super) struct Operation {
    /// `get`, `post`, `put`, `patch` or `delete`.
    pub(super) method: &'static str,
    /// Its path, with `{id}` for an id and `{name}` for a name.
    pub(super) path: &'static str,
    /// What it does, in a few words.
    pub(super) summary: &'static str,
    /// Schema of the body.
    pub(super) request: Option<&'static str>,
    /// Status of a good answer.
    pub(super) status: &'static str,
    /// What a good answer holds.
    pub(super) answer: Answer,
    /// Who answers.
    pub(super) serve: fn() -> MethodRouter<AppState>,
}

/// What a good answer holds.
pub(super) enum Answer {
    /// JSON of this schema.
    Json(&'static str),
    /// Server-Sent Events.
    Events,
    /// A page, a script or text.
    Text(&'static str),
    /// Nothing.
    Empty,
}

use Answer::{Empty, Events, Json, Text};

macro_rules! operations {
    ($($method:ident $path:literal $summary:literal $request:expr, $status:literal $answer:expr, $handler:expr;)+) => {
        &[$(Operation {
            method: stringify!($method),
            path: $path,
            summary: $summary,
            request: $request,
            status: $status,
            answer: $answer,
            serve: || $method($handler),
        }),+]
    };
}

const PLAIN: &str = "text/plain";
const LINES: &str = "application/jsonl";
const METRICS: &str = "application/openmetrics-text";
const HTML: &str = "text/html";
const SCRIPT: &str = "text/javascript";

/// All of them. Those below `/api/` need a key.
pub(super) const OPERATIONS: &[Operation] = operations! {
    post "/api/v1/messages" "Ask a model" Some("NewMessage"), "202" Json("Accepted"), messages::create;
    get "/api/v1/messages/{id}" "The record of a message" None, "200" Json("Record"), record::show;
    delete "/api/v1/messages/{id}" "Delete a message with its log" None, "204" Empty, record::remove;
    get "/api/v1/messages/{id}/events" "Follow a message" None, "200" Events, events::follow;
    post "/api/v1/messages/{id}/stream_tokens" "A token for `?token=` of the event stream" None, "201" Json("StreamToken"), keys::token;
    post "/api/v1/messages/{id}/cancel" "Stop a message and its upstream call" None, "202" Json("Cancelled"), messages::cancel;
    post "/api/v1/messages/{id}/tool_results" "Results of calls that the client runs" Some("ToolResults"), "200" Json("Taken"), answers::results;
    post "/api/v1/messages/{id}/tool_confirmations" "Yes or no to calls that wait for it" Some("ToolConfirmations"), "200" Json("Taken"), answers::confirmations;
    post "/api/v1/decode" "Events of one reply" Some("Decode"), "200" Json("Decoded"), decode::decode;
    post "/api/v1/check" "Hold one reply against its contract" Some("Check"), "200" Json("Checked"), decode::check;
    get "/api/v1/settings" "Settings" None, "200" Json("Settings"), settings::show;
    put "/api/v1/settings" "Change settings" Some("SettingsChange"), "200" Json("Settings"), settings::change;
    get "/api/v1/conversations" "Conversations, newest first" None, "200" Json("Conversations"), conversations::list;
    post "/api/v1/conversations" "Begin a conversation" Some("NewConversation"), "201" Json("Conversation"), conversations::create;
    get "/api/v1/conversations/{id}" "A conversation and its messages, oldest first" None, "200" Json("Conversation"), conversations::show;
    patch "/api/v1/conversations/{id}" "Change title and metadata" Some("NewConversation"), "200" Json("Conversation"), conversations::change;
    delete "/api/v1/conversations/{id}" "Delete a conversation with its messages" None, "204" Empty, conversations::remove;
    get "/api/v1/conversations/{id}/export" "A conversation as JSON Lines" None, "200" Text(LINES), conversations::export;
    get "/api/v1/tools" "Registered tools, by name" None, "200" Json("Tools"), tools::list;
    get "/api/v1/tools/{name}" "A tool, without its secret" None, "200" Json("Tool"), tools::show;
    put "/api/v1/tools/{name}" "Register a tool, or replace one" Some("Definition"), "200" Json("Tool"), tools::put;
    delete "/api/v1/tools/{name}" "Remove a tool" None, "204" Empty, tools::remove;
    get "/api/v1/keys" "Keys, without secrets" None, "200" Json("Keys"), keys::list;
    post "/api/v1/keys" "Make a key; its secret is in the answer and nowhere else" Some("NewKey"), "201" Json("Key"), keys::create;
    delete "/api/v1/keys/{id}" "Remove a key" None, "204" Empty, keys::remove;
    get "/healthz" "Whether the process lives" None, "200" Text(PLAIN), super::healthy;
    get "/readyz" "Whether it takes requests" None, "200" Text(PLAIN), super::ready;
    get "/metrics" "Counters and times, OpenMetrics text" None, "200" Text(METRICS), super::metrics;
    get "/openapi.json" "This description" None, "200" Json("Object"), openapi::document;
    get "/docs" "This description to read" None, "200" Text(HTML), openapi::page;
    get "/docs.js" "The script of that page" None, "200" Text(SCRIPT), openapi::script;
    get "/" "Where to go from here" None, "200" Text(HTML), super::home;
};
