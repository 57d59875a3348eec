//! Tools and who runs them: what is registered, where webhooks may go, what a call is and what came of it.
//!
//! What does not belong here: when calls run, which is the loop in `drive`.

mod desk;
mod guard;
mod schemas;
mod told;
mod trouble;
mod webhook;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tambour::options::Language;
use tambour::schema::Schema;
use tambour::tool::{Tool, Tools};

pub(crate) use desk::{Answer, Decision, Desk, Desks, Refusal};
pub(crate) use guard::Guard;
pub(crate) use schemas::Schemas;
pub(crate) use told::{told, told_one};
pub(crate) use trouble::Trouble;
pub(crate) use webhook::{Request, Webhooks, environment};

/// How tools may be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolLimits {
    /// Hosts that webhooks may be on: `host`, `host:port` or `*.domain`. None by default.
    pub allowed_hosts: Vec<String>,
    /// Whether an allowed host may have an address of this machine or of a private network.
    pub allow_private: bool,
    /// Replies of one message that may call tools.
    pub max_iterations: u32,
    /// Milliseconds that a webhook gets when its tool does not say.
    pub timeout_ms: u64,
    /// Most milliseconds that a tool may say.
    pub max_timeout_ms: u64,
    /// Milliseconds that clients get to post results.
    pub results_ms: u64,
    /// Milliseconds that people get to confirm calls.
    pub confirmations_ms: u64,
    /// Bytes of a webhook's answer.
    pub max_answer: usize,
    /// Bytes of one result that the model is shown.
    pub max_shown: usize,
    /// Patterns of one schema; the tools of a message may have four times as many together.
    pub max_patterns: usize,
    /// Bytes of one of them when it is compiled.
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

/// What is asked of `PUT /api/v1/tools/{name}`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    /// What it does, in one line; the `description` of its schema when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// JSON Schema of its arguments.
    #[schema(value_type = Object)]
    pub(crate) schema: Value,
    /// Who may call it; everybody when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) callers: Option<Vec<String>>,
    /// Whether it changes nothing; `readOnly` of its schema when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) read_only: Option<bool>,
    /// Whether a person is asked before it runs.
    #[serde(default)]
    pub(crate) confirm: bool,
    /// Who runs it.
    pub(crate) executor: Executor,
}

/// Who runs a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Executor {
    /// The server posts the call to a URL; the answer is the result.
    Http {
        /// `http` or `https`, on a host of `tools.allowed_hosts`.
        url: String,
        /// Milliseconds it gets.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// Signs the calls. Taken, and never shown.
        #[serde(default, skip_serializing)]
        #[schema(value_type = Option<String>)]
        secret: Option<Secret>,
        /// A variable of the server's environment that holds the secret; its name begins with `TAMBOUR_TOOL_SECRET_`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret_env: Option<String>,
    },
    /// The caller runs it and posts the result.
    Client {},
    /// A server of `mcp` in the configuration runs it; nobody registers that.
    #[serde(skip_deserializing)]
    #[schema(ignore)]
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "only servers with the feature `mcp` call tools of MCP servers")
    )]
    Mcp {
        /// Name of the server.
        server: String,
        /// What the server calls it.
        tool: String,
    },
}

/// Text that is not shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Bytes of one definition, its schema included.
pub(crate) const DEFINITION: usize = 256 << 10;

/// Bytes of a description.
pub(crate) const DESCRIPTION: usize = 2000;

/// Begin of the names of variables that may be secrets of tools, so that a caller cannot name any other one.
pub(crate) const SECRET_ENV: &str = "TAMBOUR_TOOL_SECRET_";

/// A tool that a message may call.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    /// What the model may write.
    pub(crate) tool: Tool,
    /// Who runs it.
    pub(crate) executor: Executor,
}

impl Definition {
    /// The tool it describes, with its schema as it was compiled.
    pub(crate) fn offered(self, name: &str, schema: &Schema) -> Offered {
        let mut tool = Tool::taking(name, schema.clone());
        if let Some(text) = self.description {
            tool.description = [text.clone(), text];
        }
        tool.read_only = self.read_only.unwrap_or(tool.read_only);
        tool.callers = self.callers;
        tool.confirm = self.confirm;
        Offered { tool, executor: self.executor }
    }
}

/// The tools of a message in the form of the chat completions interface, for models that call them beside the text.
pub(crate) fn functions(offered: &[Offered], language: Language) -> Vec<Value> {
    let function = |Offered { tool, .. }: &Offered| {
        let (name, description) = (&tool.name, tool.description(language));
        json!({"type": "function", "function": {"name": name, "description": description, "parameters": tool.schema()}})
    };
    offered.iter().map(function).collect()
}

/// The tools of a message, as the reader of a reply wants them.
pub(crate) fn registry(offered: &[Offered]) -> Tools {
    Tools::new(offered.iter().map(|one| one.tool.clone()))
}
