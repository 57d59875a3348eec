//! Configuration of MCP servers, whose tools messages may call, and its checks.

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::base::origins::{ConfigError, ValueOrigins};
use crate::base::secrets::key_from_variable;
use crate::base::urls::mask_url;
use crate::tools::{ToolLimits, is_tool_name};

/// MCP server: reached over HTTP (`url`), or started as a child process (`command`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct McpConfig {
    /// URL of the server (streamable HTTP).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of all requests to the server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Environment variable with the server's key, which is sent as `Authorization: Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// Program to start; it communicates over its standard input and output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Names of environment variables passed to the program in addition to a basic set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Tools to expose to messages, by the server's own names; `*` exposes all.
    pub tools: Vec<String>,
    /// Prefix of the exposed names of its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Timeout of a call and of connecting, in milliseconds; `tools.timeout_ms` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Tools that need a confirmation before they run, by the server's own names; `*` means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confirm: Vec<String>,
}

/// Entry of a list of tools that means all of them.
const ALL_TOOLS: &str = "*";
/// Headers that the protocol sets and the configuration may not set.
const PROTOCOL_HEADERS: [&str; 6] =
    ["accept", "content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id", "host"];

impl McpConfig {
    /// Returns the exposed name of a tool, from the server's own name.
    pub(crate) fn exposed_name(&self, tool: &str) -> String {
        format!("{}{tool}", self.prefix.as_deref().unwrap_or_default())
    }

    /// Returns the name of a tool on the server, from its exposed name; `None` if the tool is not exposed.
    pub(crate) fn own_name<'a>(&self, name: &'a str) -> Option<&'a str> {
        let tool = name.strip_prefix(self.prefix.as_deref().unwrap_or_default())?;
        self.exposes(tool).then_some(tool)
    }

    /// Returns `true` if the tool with this name on the server is exposed.
    pub(crate) fn exposes(&self, tool: &str) -> bool {
        contains_tool(&self.tools, tool)
    }

    /// Returns `true` if `tools` lists the tool with this exposed name itself, not only all tools by `*`.
    pub(crate) fn names_explicitly(&self, name: &str) -> bool {
        self.own_name(name).is_some_and(|tool| self.tools.iter().any(|listed_tool| listed_tool == tool))
    }

    /// Returns `true` if the tool with this name on the server needs a confirmation.
    #[cfg_attr(
        not(feature = "mcp"),
        expect(dead_code, reason = "only servers with the feature `mcp` call tools of MCP servers")
    )]
    pub(crate) fn needs_confirmation(&self, tool: &str) -> bool {
        contains_tool(&self.confirm, tool)
    }

    /// Masks possible secrets in the URL and headers, to show the configuration.
    pub(crate) fn mask(&mut self) {
        if let Some(url) = &mut self.url {
            *url = mask_url(url);
        }
        self.headers.values_mut().for_each(|value| *value = "***".to_owned());
    }
}

fn contains_tool(list: &[String], tool: &str) -> bool {
    list.iter().any(|entry| entry == ALL_TOOLS || entry == tool)
}

/// MCP servers of a configuration, with the limits and origins that their checks and connections need.
#[derive(Clone, Copy)]
pub(crate) struct McpSection<'a> {
    /// MCP servers by name.
    pub(crate) servers: &'a BTreeMap<String, McpConfig>,
    /// Limits of tools: timeouts and the size of results.
    pub(crate) tools: &'a ToolLimits,
    /// Origins of the values, named in errors.
    pub(crate) origins: &'a ValueOrigins,
}

impl McpSection<'_> {
    /// Checks the MCP servers.
    ///
    /// # Errors
    /// A field of a server is invalid, its key cannot be read, or two servers expose a tool under one name.
    pub(crate) fn check_mcp(&self) -> Result<(), ConfigError> {
        let mut servers_by_tool: BTreeMap<String, &str> = BTreeMap::new();
        for (name, server) in self.servers {
            self.check_mcp_server(name, server)?;
            for tool in server.tools.iter().filter(|tool| *tool != ALL_TOOLS) {
                let exposed_name = server.exposed_name(tool);
                if let Some(other_server) = servers_by_tool.insert(exposed_name.clone(), name) {
                    let reason = format!(
                        "has `{exposed_name}`, and so has `{other_server}`; give one of them a `prefix`"
                    );
                    return Err(self.origins.field_error(&format!("mcp.{name}.tools"), &reason));
                }
            }
        }
        Ok(())
    }

    fn check_mcp_server(&self, name: &str, server: &McpConfig) -> Result<(), ConfigError> {
        let mcp_error =
            |field: &str, reason: &str| Err(self.origins.field_error(&format!("mcp.{name}.{field}"), reason));
        let is_name_char = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        if !(1..=32).contains(&name.len()) || !name.chars().all(is_name_char) {
            let reason = "is not a valid name of an MCP server: expected 1 to 32 of a-z, 0-9, `_` and `-`";
            return Err(self.origins.field_error(&format!("mcp.{name}"), reason));
        }
        if cfg!(not(feature = "mcp")) {
            return Err(self.origins.field_error(
                &format!("mcp.{name}"),
                "needs a server that was built with the feature `mcp`",
            ));
        }
        match (&server.url, &server.command) {
            (Some(_), Some(_)) => {
                return mcp_error("command", "cannot be combined with `url`: give only one of them");
            }
            (None, None) => {
                return Err(self.origins.field_error(
                    &format!("mcp.{name}"),
                    "has neither a `url` nor a `command`: give one of them",
                ));
            }
            (Some(url), None) => {
                let masked_url = mask_url(url);
                let has_http_scheme = ["http://", "https://"]
                    .iter()
                    .any(|supported_scheme| url.to_ascii_lowercase().starts_with(supported_scheme));
                match Url::parse(url) {
                    Ok(url) if has_http_scheme && url.has_host() && url.fragment().is_none() => {}
                    Err(error) if has_http_scheme => {
                        return mcp_error(
                            "url",
                            &format!("is `{masked_url}`, which is not a valid URL: {error}"),
                        );
                    }
                    _ => {
                        return mcp_error(
                            "url",
                            &format!("must begin with http:// or https://, but is `{masked_url}`"),
                        );
                    }
                }
                for (field, is_set) in [("args", !server.args.is_empty()), ("env", !server.env.is_empty())] {
                    if is_set {
                        return mcp_error(field, "needs `command`, but the server has a `url`");
                    }
                }
            }
            (None, Some(command)) => {
                if command.trim().is_empty() {
                    return mcp_error("command", "is empty: expected a program");
                }
                for (field, is_set) in
                    [("headers", !server.headers.is_empty()), ("key_env", server.key_env.is_some())]
                {
                    if is_set {
                        return mcp_error(
                            field,
                            "needs `url`, but the server has a `command`; pass variables to it with `env`",
                        );
                    }
                }
            }
        }
        for (header, value) in &server.headers {
            let is_reserved = PROTOCOL_HEADERS.contains(&header.to_ascii_lowercase().as_str());
            if HeaderName::try_from(header).is_err() || HeaderValue::try_from(value).is_err() || is_reserved {
                let reason = if is_reserved {
                    "belongs to the protocol"
                } else {
                    "is not a valid header, or has an invalid value"
                };
                return mcp_error("headers", &format!("has `{}`, which {reason}", header.escape_debug()));
            }
        }
        if let Some(variable) = &server.key_env {
            self.read_mcp_key(name, variable)?;
        }
        if let Some(invalid_name) =
            server.env.iter().find(|variable| variable.is_empty() || variable.contains(['=', '\0']))
        {
            return mcp_error(
                "env",
                &format!("must list names of variables, not `{}`", invalid_name.escape_debug()),
            );
        }
        if server.tools.is_empty() {
            return mcp_error(
                "tools",
                "is empty, so no tool would be offered: give names of tools, or `*` for all",
            );
        }
        for tool in server.tools.iter().filter(|tool| *tool != ALL_TOOLS) {
            let exposed_name = server.exposed_name(tool);
            if !is_tool_name(&exposed_name) {
                let reason = format!(
                    "has `{}`, but the name of a tool must be 1 to 64 letters, digits, `_`, `-` and `.`",
                    exposed_name.escape_debug()
                );
                return mcp_error("tools", &reason);
            }
        }
        if let Some(prefix) = &server.prefix
            && !is_tool_name(prefix)
        {
            return mcp_error("prefix", "must consist of letters, digits, `_`, `-` and `.`");
        }
        if let Some(tool) = server.confirm.iter().find(|tool| *tool != ALL_TOOLS && !server.exposes(tool)) {
            return mcp_error("confirm", &format!("names `{tool}`, which is not among its `tools`"));
        }
        let max_timeout = self.tools.max_timeout_ms;
        match server.timeout_ms {
            Some(ms) if !(1..=max_timeout).contains(&ms) => mcp_error(
                "timeout_ms",
                &format!("must be 1 to {max_timeout} (`tools.max_timeout_ms`), not {ms}"),
            ),
            _ => Ok(()),
        }
    }

    /// Reads the key of the MCP server `name` from an environment variable.
    ///
    /// # Errors
    /// The variable is not set, or its value is not a valid key.
    pub(crate) fn read_mcp_key(&self, name: &str, variable: &str) -> Result<String, ConfigError> {
        key_from_variable(variable).map_err(|error| {
            self.origins.field_error(
                &format!("mcp.{name}.key_env"),
                &format!("names the variable `{variable}`, but {error}"),
            )
        })
    }
}
