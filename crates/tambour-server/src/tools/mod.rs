//! Tools and their executors: definitions, access rules, clients' answers, webhooks, and error results.
//!
//! The calls of a reply are ordered and run by the loop in `run::runner`, not here.

mod call_errors;
mod desk;
mod guard;
mod result_texts;
mod schemas;
mod webhook;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::options::Language;
use tambour::schema::Schema;
use tambour::tool::{RegisteredTool, ToolRegistry};

pub(crate) use call_errors::CallError;
pub(crate) use desk::{AnswerDesk, AnswerRefusal, CallDecision, DeskRegistry, ToolAnswer};
pub(crate) use guard::WebhookGuard;
pub(crate) use result_texts::{result_text, results_message};
pub(crate) use schemas::SchemaCache;
pub(crate) use webhook::{WebhookClient, WebhookRequest, secret_from_env};

/// Limits of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolLimits {
    /// Hosts of webhooks: `host`, `host:port` or `*.domain`. None by default.
    pub allowed_hosts: Vec<String>,
    /// True if allowed hosts may have loopback and private addresses.
    pub allow_private: bool,
    /// Maximum number of replies of one message that may call tools.
    pub max_iterations: u32,
    /// Timeout of a webhook in milliseconds, if its tool has none.
    pub timeout_ms: u64,
    /// Longest timeout of a tool in milliseconds.
    pub max_timeout_ms: u64,
    /// Milliseconds that clients have to post results.
    pub results_ms: u64,
    /// Milliseconds that users have to confirm calls.
    pub confirmations_ms: u64,
    /// Maximum length in bytes of a result of a webhook or an MCP server.
    pub max_answer: usize,
    /// Maximum length in bytes of one result as shown to the model; a longer one is cut.
    pub max_shown: usize,
    /// Maximum number of patterns of one schema; all tools of a message may have four times as many together.
    pub max_patterns: usize,
    /// Maximum size of one compiled pattern in bytes.
    pub max_pattern_bytes: usize,
}

impl Default for ToolLimits {
    fn default() -> ToolLimits {
        ToolLimits {
            allowed_hosts: Vec::new(),
            allow_private: false,
            max_iterations: 8,
            timeout_ms: 30_000,
            max_timeout_ms: 300_000,
            results_ms: 600_000,
            confirmations_ms: 600_000,
            max_answer: 1 << 20,
            max_shown: 32 << 10,
            max_patterns: 64,
            max_pattern_bytes: 256 << 10,
        }
    }
}

/// Body of `PUT /api/v1/tools/{name}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    /// Description of the tool in one line; the `description` of its schema when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub(crate) schema: Value,
    /// Callers that may use it; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) callers: Option<Vec<String>>,
    /// True if it has no side effects; `readOnly` of its schema when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read_only: Option<bool>,
    /// Requires a person to confirm each call.
    #[serde(default)]
    pub(crate) confirm: bool,
    /// Executor of the tool.
    pub(crate) executor: Executor,
}

/// Executor of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Executor {
    /// Webhook: the server posts the call to a URL; the response is the result.
    Http {
        /// URL, `http` or `https`, on a host of `tools.allowed_hosts`.
        url: String,
        /// Timeout in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// Secret that signs the calls; never shown.
        #[serde(default, skip_serializing)]
        #[schema(value_type = Option<String>)]
        secret: Option<HiddenText>,
        /// Environment variable of the server with the secret; its name begins with `TAMBOUR_TOOL_SECRET_`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret_env: Option<String>,
    },
    /// Client: the caller runs it and posts the result.
    Client {},
    /// MCP server of the configuration; cannot be registered.
    #[serde(skip_deserializing)]
    #[schema(ignore)]
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "only servers with the feature `mcp` call tools of MCP servers")
    )]
    Mcp {
        /// Name of the server.
        server: String,
        /// Name of the tool on that server.
        tool: String,
    },
}

/// Text that is never shown: its `Debug` is masked.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct HiddenText(pub(crate) String);

impl std::fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Maximum length in bytes of a tool's definition, and of a schema.
pub(crate) const MAX_DEFINITION_BYTES: usize = 256 << 10;

/// Maximum length of a description in bytes.
pub(crate) const MAX_DESCRIPTION_BYTES: usize = 2000;

/// Prefix of the environment variables that may hold secrets of tools. Clients give the name of the variable,
/// and must not make the server read any other variable.
pub(crate) const SECRET_ENV_PREFIX: &str = "TAMBOUR_TOOL_SECRET_";

/// Tool that a message may call.
#[derive(Clone, Debug)]
pub(crate) struct OfferedTool {
    /// Tool as the model may call it.
    pub(crate) tool: RegisteredTool,
    /// Executor of the tool.
    pub(crate) executor: Executor,
}

impl Definition {
    /// Builds the tool of this name with its compiled schema.
    pub(crate) fn into_tool(self, name: &str, schema: &Schema) -> OfferedTool {
        let mut tool = RegisteredTool::with_schema(name, schema.clone());
        if let Some(text) = self.description {
            // The same text in both languages.
            tool.description = [text.clone(), text];
        }
        tool.read_only = self.read_only.unwrap_or(tool.read_only);
        tool.callers = self.callers;
        tool.requires_confirmation = self.confirm;
        OfferedTool { tool, executor: self.executor }
    }
}

/// Returns the tools of a message in the form of OpenAI's chat completions interface, for native calls.
pub(crate) fn tool_functions(tools: &[OfferedTool], language: Language) -> Vec<Value> {
    let function = |OfferedTool { tool, .. }: &OfferedTool| {
        let (name, description) = (&tool.name, tool.description(language));
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": tool.schema()}})
    };
    tools.iter().map(function).collect()
}

/// Returns the tools of a message in the form that the pipeline checks calls against.
pub(crate) fn tool_registry(tools: &[OfferedTool]) -> ToolRegistry {
    ToolRegistry::new(tools.iter().map(|offered| offered.tool.clone()))
}

/// Returns `true` if a name is valid for a tool: 1 to 64 letters, digits, `_`, `-` and `.`.
pub(crate) fn is_tool_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&name.chars().count()) && name.chars().all(is_allowed)
}
