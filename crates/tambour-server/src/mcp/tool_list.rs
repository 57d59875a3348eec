//! Tools listed by an MCP server. The server's data is untrusted: it is bounded, and tools that cannot be
//! offered are skipped with a warning.

use rmcp::model::PaginatedRequestParams;
use rmcp::{Peer, RoleClient};
use serde_json::Value;

use super::ListedTool;
use super::McpConfig;
use super::connect::ConnectionError;
use crate::base::ids;
use crate::tools::is_tool_name;
use crate::tools::{Definition, Executor, MAX_DEFINITION_BYTES, MAX_DESCRIPTION_BYTES};

/// Maximum number of pages of a list.
const MAX_PAGES: usize = 50;
/// Maximum number of tools of one server.
const MAX_TOOLS: usize = 500;
/// Maximum size of the schemas of one server together, in bytes.
const MAX_SCHEMA_BYTES: usize = 8 << 20;

/// Lists the exposed tools of a server, sorted by exposed name.
///
/// # Errors
/// The server does not list its tools, or sends too many pages.
pub(super) async fn list_tools(
    server: &str,
    settings: &McpConfig,
    peer: &Peer<RoleClient>,
) -> Result<Vec<ListedTool>, ConnectionError> {
    let (mut tools, mut total_schema_bytes) = (Vec::<ListedTool>::new(), 0);
    let listed_at = ids::now();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = peer.list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor))).await?;
        for tool in page.tools.into_iter().filter(|tool| settings.exposes(&tool.name)) {
            let name = settings.exposed_name(&tool.name);
            let schema = Value::Object(std::sync::Arc::unwrap_or_clone(tool.input_schema));
            let schema_bytes = schema.to_string().len();
            let skip_reason = if !is_tool_name(&name) {
                "its name is not a valid tool name"
            } else if schema_bytes > MAX_DEFINITION_BYTES {
                "its schema is too long"
            } else if tools.iter().any(|other_tool| other_tool.name == name) {
                "another tool has the same name"
            } else if tools.len() == MAX_TOOLS || total_schema_bytes + schema_bytes > MAX_SCHEMA_BYTES {
                "the server has too many tools"
            } else {
                let read_only = tool.annotations.and_then(|hints| hints.read_only_hint);
                let executor = Executor::Mcp { server: server.to_owned(), tool: tool.name.to_string() };
                let confirm = settings.needs_confirmation(&tool.name);
                let description =
                    tool.description.as_deref().or(tool.title.as_deref()).map(shorten_description);
                let definition =
                    Definition { description, schema, callers: None, read_only, confirm, executor };
                total_schema_bytes += schema_bytes;
                tools.push(ListedTool {
                    is_listed_explicitly: settings.names_explicitly(&name),
                    name,
                    definition,
                    listed_at: listed_at.clone(),
                });
                continue;
            };
            let tool: String = tool.name.chars().take(64).flat_map(char::escape_debug).collect();
            tracing::warn!(mcp = server, tool, why = skip_reason, "a tool of an MCP server was left out");
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            tools.sort_by(|a, b| a.name.cmp(&b.name));
            return Ok(tools);
        }
    }
    Err(ConnectionError::EndlessList)
}

/// Shortens a description to one line of at most `MAX_DESCRIPTION_BYTES`, the limit of registered tools.
fn shorten_description(text: &str) -> String {
    let mut line = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_DESCRIPTION_BYTES {
            line.truncate(line.floor_char_boundary(MAX_DESCRIPTION_BYTES - '…'.len_utf8()));
            line.push('…');
            break;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{MAX_DESCRIPTION_BYTES, shorten_description};

    #[test]
    fn descriptions_are_one_line() {
        assert_eq!(shorten_description("  Reads\n\n- a file\r\n\t\0now "), "Reads - a file now");
        for long in ["需".repeat(MAX_DESCRIPTION_BYTES), "word ".repeat(MAX_DESCRIPTION_BYTES)] {
            let line = shorten_description(&long);
            assert!(
                (MAX_DESCRIPTION_BYTES - 10..=MAX_DESCRIPTION_BYTES).contains(&line.len())
                    && line.ends_with('…'),
                "{}",
                line.len()
            );
        }
    }
}
