//! Table of operations, from which both the router and the OpenAPI description are built.

use axum::routing::{MethodRouter, delete, get, patch, post, put};

use super::foreign::{ag_ui, ai_sdk, anthropic, chat, models, responses};
use super::idempotency::{self, ResponseStorage};
use super::operation_docs::{
    ADMIN_CODES, ANSWER_CODES, BUSY_CODES, COMMAND_CODES, Codes, FIXED_PATH_CODES, IDEMPOTENCY_CODES,
    IF_MATCH_CODES, LISTING_CODES, MESSAGE_CODES, MODEL_CODES, PATH_CODES, POOL_CODES, QUERY_CODES,
    RENDER_CODES, SCHEMA_CODES, SCRIPT_CODES, STATE_CODES, STREAM_CODES, STREAM_QUERY_CODES, TEMPLATE_CODES,
};
use super::parameters::{self, RowParameters};
use super::{
    cards, contracts, conversations, decode, dialogue_turns, dialogues, durable_streams, events, figures,
    imports, keys, messages, openapi, play, prompts, record, rules, scripts, services, settings, states,
    templates, tool_answers, tool_calls, tools, usage, versions,
};
use crate::http::app::AppState;

/// Operation of the interface.
pub(super) struct ApiOperation {
    /// `get`, `post`, `put`, `patch` or `delete`.
    pub(super) method: &'static str,
    /// Path with parameters, such as `{id}`; `{*name}` matches a name that contains slashes.
    pub(super) path: &'static str,
    /// Public operation id (`operationId`).
    pub(super) id: &'static str,
    /// Tag, one of [`super::operation_docs::TAGS`].
    pub(super) tag: &'static str,
    /// Summary in a few words.
    pub(super) summary: &'static str,
    /// Name of the schema of the request body, if there is one.
    pub(super) request: Option<&'static str>,
    /// Status of a successful response.
    pub(super) status: &'static str,
    /// Content of a successful response.
    pub(super) response: ResponseContent,
    /// Problem codes in addition to those that follow from other fields (see `operation_docs::problems`).
    pub(super) own_codes: &'static [Codes],
    /// Builds the query parameters, and those of headers that only this operation reads; `None` if there are
    /// none.
    pub(super) parameters: Option<RowParameters>,
    /// Storage of the response for requests repeated with the same `Idempotency-Key`; `None` if repetitions
    /// are not recognized, or the handler recognizes them itself.
    pub(super) stored_response: Option<ResponseStorage>,
    /// Builds the router of the method, with the handler.
    pub(super) handler: fn() -> MethodRouter<AppState>,
}

/// Content of a successful response.
pub(super) enum ResponseContent {
    /// JSON of the schema with this name.
    Json(&'static str),
    /// JSON of the schema with this name, and an `ETag` with its version.
    VersionedJson(&'static str),
    /// Server-Sent Events.
    Events,
    /// Text of this media type.
    Text(&'static str),
    /// No content.
    Empty,
}

use ResponseContent::{Empty, Events, Json, Text, VersionedJson};

/// Returns the optional `with` item of a row, which the macro passes as a list of at most one item.
const fn optional_parameters(parameters: &[RowParameters]) -> Option<RowParameters> {
    match parameters {
        [parameters] => Some(*parameters),
        _ => None,
    }
}

/// Returns the optional last item of a row, which the macro passes as a list of at most one item.
const fn optional_storage(storage: &[ResponseStorage]) -> Option<ResponseStorage> {
    match storage {
        [storage] => Some(*storage),
        _ => None,
    }
}

/// Builds the table from rows whose items are explained at [`OPERATIONS`].
macro_rules! operations {
    ($(
        $method:ident $path:literal => $handler:expr,
            $id:literal $tag:literal $summary:literal
            $request:expr, $status:literal $response:expr, [$($codes:expr),*] $(with $parameters:expr)? $(, $storage:expr)?;
    )+) => {
        &[$(ApiOperation {
            method: stringify!($method),
            path: $path,
            id: $id,
            tag: $tag,
            summary: $summary,
            request: $request,
            status: $status,
            response: $response,
            own_codes: &[$($codes),*],
            parameters: optional_parameters(&[$($parameters)?]),
            stored_response: optional_storage(&[$($storage)?]),
            handler: || $method($handler),
        }),+]
    };
}

const TEXT_PLAIN: &str = "text/plain";
const JSON_LINES: &str = "application/jsonl";
const YAML: &str = "application/yaml";
const METRICS: &str = "application/openmetrics-text";
const HTML: &str = "text/html";
const JAVASCRIPT: &str = "text/javascript";

impl ApiOperation {
    /// Returns `true` if the operation requires a key, once the server has any.
    pub(super) fn needs_key(&self) -> bool {
        ["/api/", "/v1/", "/ag-ui"].iter().any(|start| self.path.starts_with(start))
    }

    /// Returns `true` if the handler processes idempotency keys itself.
    pub(super) fn handles_idempotency(&self) -> bool {
        self.own_codes.concat().contains(&"idempotency_key_reused")
    }

    /// Returns `true` if the operation is a write that accepts `If-Match`.
    pub(super) fn takes_if_match(&self) -> bool {
        self.own_codes.concat().contains(&"changed_meanwhile")
    }
}

/// All operations. A row has method, path and handler; id, tag and summary; request body, status and content
/// of the response, own problem codes, and if there are any, parameters (`with`) and storage of the response.
pub(super) const OPERATIONS: &[ApiOperation] = operations! {
    post "/api/v1/messages" => messages::create,
        "createMessage" "messages" "Ask a model"
        Some("NewMessage"), "202" Json("Accepted"), [MESSAGE_CODES, SCHEMA_CODES, STREAM_CODES, IDEMPOTENCY_CODES];
    get "/api/v1/messages/{id}" => record::show,
        "getMessage" "messages" "The record of a message"
        None, "200" Json("Record"), [];
    delete "/api/v1/messages/{id}" => record::remove,
        "deleteMessage" "messages" "Delete a message with its log"
        None, "204" Empty, [COMMAND_CODES];
    get "/api/v1/messages/{id}/events" => events::follow,
        "followMessage" "messages" "Follow a message"
        None, "200" Events, [STREAM_CODES, QUERY_CODES, &["malformed_cursor"]] with parameters::cursor;
    get "/api/v1/messages/{id}/stream" => durable_streams::read_message,
        "readMessageStream" "messages" "Read a message as a Durable Stream"
        None, "200" Json("StreamMessages"), [STREAM_CODES, STREAM_QUERY_CODES] with parameters::durable_stream;
    post "/api/v1/messages/{id}/stream_tokens" => keys::create_token,
        "createStreamToken" "messages" "Get a token for `?token=` of the event stream"
        None, "201" Json("StreamToken"), [], idempotency::TOKEN_RESPONSE;
    post "/api/v1/messages/{id}/cancel" => messages::cancel,
        "cancelMessage" "messages" "Stop a message and its upstream call"
        None, "202" Json("Cancelled"), [COMMAND_CODES];
    post "/api/v1/messages/{id}/regenerate" => messages::regenerate,
        "regenerateMessage" "messages" "Regenerate a message: another one takes its place"
        None, "202" Json("Accepted"), [COMMAND_CODES, MESSAGE_CODES, SCHEMA_CODES, STATE_CODES, &["overloaded"]], ResponseStorage::Stored;
    post "/api/v1/messages/{id}/tool_results" => tool_answers::post_results,
        "postToolResults" "messages" "Send results of calls that the client runs"
        Some("ToolResults"), "200" Json("Taken"), [ANSWER_CODES, COMMAND_CODES];
    post "/api/v1/messages/{id}/tool_confirmations" => tool_answers::post_confirmations,
        "postToolConfirmations" "messages" "Allow or deny calls that wait for a confirmation"
        Some("ToolConfirmations"), "200" Json("Taken"), [ANSWER_CODES, COMMAND_CODES];
    post "/api/v1/decode" => decode::decode,
        "decodeReply" "replies" "Decode one reply to events"
        Some("Decode"), "200" Json("Decoded"), [SCHEMA_CODES, POOL_CODES, &["invalid_option", "unknown_dialect"]];
    post "/api/v1/check" => decode::check,
        "checkReply" "replies" "Check one reply against its contract"
        Some("Check"), "200" Json("Checked"), [SCHEMA_CODES, POOL_CODES, &["invalid_option", "unknown_contract"]];
    get "/api/v1/contracts/{name}" => contracts::show,
        "getContract" "replies" "The contract of a dialect as instructions, JSON Schema or grammar"
        None, "200" Text(TEXT_PLAIN), [POOL_CODES, QUERY_CODES, &["grammar_impossible"]] with parameters::contract_form;
    post "/api/v1/contracts/{name}" => contracts::write,
        "writeContract" "replies" "The contract of a dialect under options, with tools, a structure or a schema"
        Some("ContractRequest"), "200" Text(TEXT_PLAIN), [SCHEMA_CODES, POOL_CODES, &["damaged", "grammar_impossible", "invalid_option", "tool_unavailable", "unknown_tool"]];
    get "/api/v1/rules" => rules::list,
        "listRules" "replies" "Rules that findings name"
        None, "200" Json("Rules"), [];
    get "/api/v1/rules/{name}" => rules::show,
        "getRule" "replies" "Rules of a code or a row, with a broken and a correct example"
        None, "200" Json("ExplainedRules"), [];
    get "/api/v1/settings" => settings::show,
        "getSettings" "settings" "Settings"
        None, "200" VersionedJson("Settings"), [];
    get "/api/v1/upstreams" => services::list_upstreams,
        "listUpstreams" "settings" "Configured upstreams and aliases, without secrets"
        None, "200" Json("Upstreams"), [ADMIN_CODES];
    post "/api/v1/upstreams/{name}/test" => services::test_upstream,
        "testUpstream" "settings" "Ask an upstream for a few tokens, to see whether it answers"
        None, "200" Json("UpstreamTest"), [ADMIN_CODES, &["rate_limited", "tokens_used_up"]];
    post "/api/v1/aliases/{name}/test" => services::test_alias,
        "testAlias" "settings" "Ask the upstream of an alias for a few tokens of its model, to see whether it answers"
        None, "200" Json("AliasTest"), [ADMIN_CODES, &["rate_limited", "tokens_used_up", "unknown_upstream"]];
    get "/api/v1/mcp" => services::list_mcp,
        "listMcpServers" "settings" "MCP servers: their connections and tools"
        None, "200" Json("McpServers"), [ADMIN_CODES];
    put "/api/v1/settings" => settings::change,
        "changeSettings" "settings" "Change settings"
        Some("SettingsChange"), "200" VersionedJson("Settings"), [ADMIN_CODES, &["settings_changed"], IF_MATCH_CODES];
    get "/api/v1/conversations" => conversations::list,
        "listConversations" "conversations" "Conversations, newest first"
        None, "200" Json("Conversations"), [LISTING_CODES] with parameters::conversations;
    post "/api/v1/conversations" => conversations::create,
        "createConversation" "conversations" "Begin a conversation"
        Some("NewConversation"), "201" Json("Conversation"), [], ResponseStorage::Stored;
    get "/api/v1/conversations/{id}" => conversations::show,
        "getConversation" "conversations" "A conversation and its messages, oldest first"
        None, "200" Json("Conversation"), [LISTING_CODES] with parameters::page;
    patch "/api/v1/conversations/{id}" => conversations::change,
        "changeConversation" "conversations" "Change title and metadata"
        Some("NewConversation"), "200" Json("Conversation"), [];
    delete "/api/v1/conversations/{id}" => conversations::remove,
        "deleteConversation" "conversations" "Delete a conversation with its messages"
        None, "204" Empty, [COMMAND_CODES];
    get "/api/v1/conversations/{id}/export" => conversations::export,
        "exportConversation" "conversations" "A conversation as JSON Lines"
        None, "200" Text(JSON_LINES), [];
    get "/api/v1/conversations/{id}/state" => states::show,
        "getState" "conversations" "The state of a conversation, now or `?at=` a message"
        None, "200" VersionedJson("State"), [STATE_CODES, QUERY_CODES, POOL_CODES];
    get "/api/v1/conversations/{id}/state/history" => states::history,
        "getStateHistory" "conversations" "Updates of the state, oldest first; the difference with `?from=` and `?to=`"
        None, "200" Json("StateHistory"), [STATE_CODES, QUERY_CODES, POOL_CODES];
    put "/api/v1/conversations/{id}/state/schema" => states::put_schema,
        "putStateSchema" "conversations" "Give the state a schema"
        Some("NewStateSchema"), "200" VersionedJson("StateSchema"), [SCHEMA_CODES, BUSY_CODES, POOL_CODES, IF_MATCH_CODES];
    post "/api/v1/conversations/{id}/state/operations" => states::apply_operations,
        "changeState" "conversations" "Change the state"
        Some("NewOperations"), "200" VersionedJson("StateUpdate"), [SCHEMA_CODES, BUSY_CODES, POOL_CODES, IF_MATCH_CODES], ResponseStorage::Stored;
    post "/api/v1/conversations/{id}/state/rollback" => states::rollback,
        "rollStateBack" "conversations" "Roll the state back to a message"
        Some("Rollback"), "200" VersionedJson("RolledBack"), [STATE_CODES, BUSY_CODES, IF_MATCH_CODES];
    get "/api/v1/tools" => tools::list,
        "listTools" "tools" "Registered tools, by name"
        None, "200" Json("Tools"), [LISTING_CODES] with parameters::page;
    get "/api/v1/tools/{name}" => tools::show,
        "getTool" "tools" "A tool, without its secret"
        None, "200" Json("Tool"), [];
    put "/api/v1/tools/{name}" => tools::put,
        "putTool" "tools" "Register a tool, or replace one"
        Some("Definition"), "200" Json("Tool"), [ADMIN_CODES, SCHEMA_CODES, POOL_CODES, &["tool_of_server", "too_many_tools", "webhook_not_allowed"]];
    delete "/api/v1/tools/{name}" => tools::remove,
        "deleteTool" "tools" "Remove a tool"
        None, "204" Empty, [&["tool_of_server"]];
    post "/api/v1/tools/{name}/calls" => tool_calls::call,
        "callTool" "tools" "Call a tool without a model"
        Some("NewToolCall"), "200" Json("ToolCallResult"), [PATH_CODES, SCHEMA_CODES, POOL_CODES, &["confirmation_required", "damaged", "forbidden", "model_forbidden", "rate_limited", "tokens_used_up", "tool_of_client", "tool_unavailable"]], ResponseStorage::Stored;
    get "/api/v1/scripts" => scripts::list,
        "listScripts" "scripts" "Scripts, by id"
        None, "200" Json("Scripts"), [LISTING_CODES];
    post "/api/v1/scripts" => scripts::create,
        "createScript" "scripts" "Store a script and publish it, or only store it with `?draft=true`"
        Some("NewScript"), "201" Json("StoredScript"), [SCRIPT_CODES, IDEMPOTENCY_CODES, POOL_CODES, &["malformed_request"]], ResponseStorage::Stored;
    post "/api/v1/scripts/validate" => scripts::validate,
        "validateScript" "scripts" "Errors and warnings of a script"
        Some("ScriptText"), "200" Json("Validated"), [POOL_CODES];
    get "/api/v1/scripts/{id}" => scripts::show,
        "getScript" "scripts" "A script: its published version, or `?version=`"
        None, "200" VersionedJson("Script"), [QUERY_CODES, FIXED_PATH_CODES] with parameters::version;
    put "/api/v1/scripts/{id}" => scripts::put,
        "putScript" "scripts" "Store the next version of a script"
        Some("NewScript"), "200" VersionedJson("StoredScript"), [SCRIPT_CODES, FIXED_PATH_CODES, POOL_CODES, IF_MATCH_CODES] with parameters::draft;
    delete "/api/v1/scripts/{id}" => scripts::remove,
        "deleteScript" "scripts" "Remove a script with its versions"
        None, "204" Empty, [FIXED_PATH_CODES, IF_MATCH_CODES];
    post "/api/v1/scripts/{id}/replay" => dialogue_turns::replay,
        "replayTest" "scripts" "Run a test of a script, without a model"
        Some("NewReplay"), "200" Json("Replayed"), [POOL_CODES, &["invalid_script", "invalid_test"]];
    post "/api/v1/scripts/{id}/publish" => versions::publish_script,
        "publishScript" "scripts" "Publish a version"
        Some("Publish"), "200" VersionedJson("Object"), [IF_MATCH_CODES];
    get "/api/v1/scripts/{id}/versions" => versions::script_versions,
        "listScriptVersions" "scripts" "Versions of a script, newest first"
        None, "200" Json("Versions"), [LISTING_CODES];
    get "/api/v1/scripts/{id}/diff" => versions::script_diff,
        "diffScript" "scripts" "Difference between the versions `?from=` and `?to=`"
        None, "200" Json("Diff"), [QUERY_CODES, &["missing_field"]];
    get "/api/v1/templates" => templates::list,
        "listTemplates" "scripts" "Prompt templates, by id"
        None, "200" Json("Templates"), [LISTING_CODES];
    get "/api/v1/templates/{name}" => templates::show,
        "getTemplate" "scripts" "A template in the version that is used"
        None, "200" VersionedJson("Template"), [QUERY_CODES, TEMPLATE_CODES] with parameters::version;
    put "/api/v1/templates/{name}" => templates::put,
        "putTemplate" "scripts" "Store the next version of a template"
        Some("NewTemplate"), "200" VersionedJson("StoredTemplate"), [IF_MATCH_CODES, &["too_many"]] with parameters::draft;
    delete "/api/v1/templates/{name}" => templates::remove,
        "deleteTemplate" "scripts" "Delete a stored template with its versions"
        None, "204" Empty, [TEMPLATE_CODES, IF_MATCH_CODES];
    post "/api/v1/templates/{name}/publish" => versions::publish_template,
        "publishTemplate" "scripts" "Publish a version"
        Some("Publish"), "200" VersionedJson("Object"), [TEMPLATE_CODES, IF_MATCH_CODES];
    get "/api/v1/templates/{name}/versions" => versions::template_versions,
        "listTemplateVersions" "scripts" "Versions of a template, newest first"
        None, "200" Json("Versions"), [LISTING_CODES, TEMPLATE_CODES];
    get "/api/v1/templates/{name}/diff" => versions::template_diff,
        "diffTemplate" "scripts" "Difference between the versions `?from=` and `?to=`"
        None, "200" Json("Diff"), [QUERY_CODES, TEMPLATE_CODES, &["missing_field"]];
    get "/api/v1/dialogues" => dialogues::list,
        "listDialogues" "dialogues" "Dialogues, newest first"
        None, "200" Json("Dialogues"), [LISTING_CODES] with parameters::dialogues;
    post "/api/v1/dialogues" => dialogues::create,
        "createDialogue" "dialogues" "Begin a dialogue"
        Some("NewDialogue"), "201" Json("Dialogue"), [IDEMPOTENCY_CODES, &["invalid_script", "not_found", "not_published", "unknown_session", "unknown_start"]], ResponseStorage::Stored;
    get "/api/v1/dialogues/{id}" => dialogues::show,
        "getDialogue" "dialogues" "A dialogue with its position"
        None, "200" Json("Dialogue"), [];
    delete "/api/v1/dialogues/{id}" => dialogues::remove,
        "deleteDialogue" "dialogues" "Delete a dialogue with its trace"
        None, "204" Empty, [COMMAND_CODES];
    post "/api/v1/dialogues/{id}/input" => dialogues::input,
        "inputDialogue" "dialogues" "Send input of the user, or the answer of the client"
        Some("NewInput"), "200" Json("Turn"), [IDEMPOTENCY_CODES, STREAM_CODES, &["answer_expected", "closing", "model_forbidden", "not_waiting", "rate_limited", "tokens_used_up", "too_many_running", "unknown_upstream"]];
    get "/api/v1/dialogues/{id}/turns" => dialogue_turns::list,
        "listTurns" "dialogues" "Inputs and their results, oldest first"
        None, "200" Json("DialogueTurns"), [LISTING_CODES] with parameters::page;
    get "/api/v1/dialogues/{id}/turns/{turn}/events" => events::follow_turn,
        "followTurn" "dialogues" "Follow a turn"
        None, "200" Events, [STREAM_CODES, QUERY_CODES, &["malformed_cursor"]] with parameters::cursor;
    get "/api/v1/dialogues/{id}/turns/{turn}/stream" => durable_streams::read_turn,
        "readTurnStream" "dialogues" "Read a turn as a Durable Stream"
        None, "200" Json("StreamMessages"), [STREAM_CODES, STREAM_QUERY_CODES] with parameters::durable_stream;
    post "/api/v1/dialogues/{id}/cancel" => dialogues::cancel,
        "cancelDialogue" "dialogues" "Stop the running turn and its model call"
        None, "202" Json("CancelledTurn"), [COMMAND_CODES];
    get "/api/v1/dialogues/{id}/trace" => dialogues::trace,
        "traceDialogue" "dialogues" "Model calls, oldest first"
        None, "200" Json("Trace"), [QUERY_CODES];
    post "/api/v1/dialogues/{id}/forks" => dialogue_turns::fork,
        "createFork" "dialogues" "Start another dialogue from the state before a turn"
        Some("NewFork"), "201" Json("Dialogue"), [], ResponseStorage::Stored;
    post "/api/v1/dialogues/{id}/play" => play::play,
        "playDialogue" "dialogues" "Let a dialogue play by itself, with given or invented answers"
        Some("NewPlay"), "200" Json("Played"), [&["closing", "model_forbidden", "rate_limited", "tokens_used_up", "too_many_running", "unknown_upstream"]];
    get "/api/v1/dialogues/{id}/coverage" => dialogue_turns::coverage,
        "getCoverage" "dialogues" "Parts of the session that a dialogue has reached"
        None, "200" Json("Coverage"), [];
    get "/api/v1/dialogues/{id}/test" => dialogue_turns::test,
        "getTest" "dialogues" "Export a dialogue as a test of its script"
        None, "200" Text(YAML), [&["no_turns"]];
    post "/api/v1/imports" => imports::create,
        "createImports" "prompts" "Import cards and lorebooks: all files or none"
        Some("NewImports"), "201" Json("Imports"), [POOL_CODES, &["broken_file", "too_many_imports"]], ResponseStorage::Stored;
    get "/api/v1/cards" => cards::list_cards,
        "listCards" "prompts" "Imported cards, newest first"
        None, "200" Json("Cards"), [LISTING_CODES] with parameters::page;
    get "/api/v1/cards/{id}" => cards::show_card,
        "getCard" "prompts" "A card as it was read, or as a file with `?format=v3` or `?format=original`"
        None, "200" Json("Card"), [QUERY_CODES, POOL_CODES, &["damaged"]] with parameters::file_format;
    delete "/api/v1/cards/{id}" => cards::remove_card,
        "deleteCard" "prompts" "Remove a card with its file"
        None, "204" Empty, [];
    get "/api/v1/lorebooks" => cards::list_books,
        "listLorebooks" "prompts" "Imported lorebooks, newest first"
        None, "200" Json("Lorebooks"), [LISTING_CODES] with parameters::page;
    get "/api/v1/lorebooks/{id}" => cards::show_book,
        "getLorebook" "prompts" "A lorebook as it was read, or as a file with `?format=v3` or `?format=original`"
        None, "200" Json("Lorebook"), [QUERY_CODES, POOL_CODES, &["damaged"]] with parameters::file_format;
    delete "/api/v1/lorebooks/{id}" => cards::remove_book,
        "deleteLorebook" "prompts" "Remove a lorebook with its file"
        None, "204" Empty, [];
    post "/api/v1/prompts/render" => prompts::render_preview,
        "renderPrompt" "prompts" "Render a prompt without asking a model"
        Some("RenderPrompt"), "200" Json("RenderedPrompt"), [RENDER_CODES, PATH_CODES, POOL_CODES];
    post "/api/v1/macros/migrate" => prompts::migrate_macros,
        "migrateMacros" "prompts" "Convert macros of other programs to a template"
        Some("MigrateMacros"), "200" Json("MigratedMacros"), [POOL_CODES];
    get "/api/v1/keys" => keys::list,
        "listKeys" "keys" "Keys, without secrets"
        None, "200" Json("Keys"), [ADMIN_CODES, LISTING_CODES] with parameters::page;
    post "/api/v1/keys" => keys::create,
        "createKey" "keys" "Make a key; its secret is only in this response"
        Some("NewKey"), "201" Json("Key"), [ADMIN_CODES, &["first_key_admin", "secret_not_stored", "unknown_alias"]], idempotency::SECRET_RESPONSE;
    patch "/api/v1/keys/{id}" => keys::change,
        "changeKey" "keys" "Change name and limits of a key"
        Some("KeyChange"), "200" Json("Key"), [ADMIN_CODES, &["damaged", "unknown_alias"]];
    delete "/api/v1/keys/{id}" => keys::remove,
        "deleteKey" "keys" "Remove a key"
        None, "204" Empty, [ADMIN_CODES, &["own_key"]];
    get "/api/v1/figures" => figures::show,
        "getFigures" "server" "Figures of replies over time: how they ended, repairs, first text, tokens and cost"
        None, "200" Json("Figures"), [QUERY_CODES] with parameters::figures;
    get "/api/v1/usage" => usage::show,
        "getUsage" "keys" "Usage of each key by day, newest first"
        None, "200" Json("Usage"), [QUERY_CODES];
    post "/v1/chat/completions" => chat::complete,
        "createChatCompletion" "openai" "OpenAI Chat Completions"
        Some("Object"), "200" Json("Object"), [MESSAGE_CODES, SCHEMA_CODES, STREAM_CODES, MODEL_CODES];
    get "/v1/models" => models::list,
        "listModels" "openai" "OpenAI: aliases and upstreams as models"
        None, "200" Json("Object"), [];
    get "/v1/models/{*name}" => models::show,
        "getModel" "openai" "OpenAI: one model"
        None, "200" Json("Object"), [MODEL_CODES];
    post "/v1/responses" => responses::create,
        "createResponse" "openai" "OpenAI Responses"
        Some("Object"), "200" Json("Object"), [MESSAGE_CODES, SCHEMA_CODES, STREAM_CODES, MODEL_CODES];
    get "/v1/responses/{id}" => responses::show,
        "getResponse" "openai" "OpenAI: a response, or its events from a number on"
        None, "200" Json("Object"), [STREAM_CODES, QUERY_CODES];
    delete "/v1/responses/{id}" => responses::remove,
        "deleteResponse" "openai" "OpenAI: delete a response"
        None, "200" Json("Object"), [];
    get "/v1/responses/{id}/input_items" => responses::input_items,
        "listInputItems" "openai" "OpenAI: input items of a response"
        None, "200" Json("Object"), [QUERY_CODES] with parameters::input_items;
    post "/v1/responses/{id}/cancel" => responses::cancel,
        "cancelResponse" "openai" "OpenAI: stop a response"
        None, "200" Json("Object"), [];
    post "/v1/messages" => anthropic::create,
        "createAnthropicMessage" "anthropic" "Anthropic Messages"
        Some("Object"), "200" Json("Object"), [MESSAGE_CODES, SCHEMA_CODES, STREAM_CODES, MODEL_CODES];
    post "/v1/messages/count_tokens" => anthropic::count_tokens,
        "countTokens" "anthropic" "Anthropic: estimated number of tokens of a request"
        Some("Object"), "200" Json("Object"), [MESSAGE_CODES, SCHEMA_CODES, MODEL_CODES];
    post "/api/chat" => ai_sdk::chat,
        "chat" "agents" "Vercel AI SDK: a UI message stream"
        Some("Object"), "200" Events, [MESSAGE_CODES, SCHEMA_CODES, STREAM_CODES, MODEL_CODES];
    get "/api/chat/{id}/stream" => ai_sdk::resume_stream,
        "resumeChat" "agents" "Vercel AI SDK: the stream of the running message"
        None, "200" Events, [STREAM_CODES, &["invalid_field"]];
    post "/api/chat/{id}/stop" => ai_sdk::stop,
        "stopChat" "agents" "Vercel AI SDK: stop the running message"
        None, "200" Json("Object"), [&["invalid_field"]];
    post "/ag-ui" => ag_ui::run_agent,
        "runAgent" "agents" "AG-UI: a run"
        Some("Object"), "200" Events, [MESSAGE_CODES, SCHEMA_CODES, STREAM_CODES, MODEL_CODES];
    get "/healthz" => super::show_health,
        "getHealth" "server" "Liveness of the process"
        None, "200" Text(TEXT_PLAIN), [];
    get "/readyz" => super::show_ready,
        "getReadiness" "server" "Readiness for requests"
        None, "200" Text(TEXT_PLAIN), [];
    get "/metrics" => super::show_metrics,
        "getMetrics" "server" "Counters and times, OpenMetrics text"
        None, "200" Text(METRICS), [];
    get "/openapi.json" => openapi::document,
        "getDescription" "server" "This description"
        None, "200" Json("Object"), [];
    get "/docs" => openapi::page,
        "getDocs" "server" "This description as a readable page"
        None, "200" Text(HTML), [];
    get "/docs.js" => openapi::script,
        "getDocsScript" "server" "The script of the readable page"
        None, "200" Text(JAVASCRIPT), [];
    get "/" => crate::http::studio::serve_home,
        "getHome" "server" "The studio"
        None, "200" Text(HTML), [];
};
