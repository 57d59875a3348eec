//! Stub of `server` for a build without the feature `mcp`: a configuration with MCP servers is refused.

use serde_json::Value;

use super::McpConfig;
use super::{ListedTool, ServerBounds};
use crate::tools::CallError;

/// Type without a value, in place of the server of the feature `mcp`.
pub(super) enum McpServer {}

impl McpServer {
    pub(super) fn new(name: &str, _: McpConfig, _: Option<String>, _: ServerBounds) -> McpServer {
        unreachable!("the check of the configuration refuses `{name}`")
    }

    pub(super) fn has_settings(&self, _: &McpConfig, _: Option<&str>, _: ServerBounds) -> bool {
        match *self {}
    }

    pub(super) fn name(&self) -> &str {
        match *self {}
    }

    pub(super) fn config(&self) -> &McpConfig {
        match *self {}
    }

    pub(super) fn state(&self) -> (&'static str, Option<String>) {
        match *self {}
    }

    pub(super) fn start(&self) {
        match *self {}
    }

    pub(super) async fn stop(&self) {
        match *self {}
    }

    pub(super) fn listed_tools(&self) -> Vec<ListedTool> {
        match *self {}
    }

    pub(super) fn find_tool(&self, _: &str) -> Option<ListedTool> {
        match *self {}
    }

    pub(super) fn has_listed_tools(&self) -> bool {
        match *self {}
    }

    pub(super) async fn wait_connected(&self) -> bool {
        match *self {}
    }

    pub(super) async fn call(&self, _: &str, _: &Value) -> Result<Value, CallError> {
        match *self {}
    }
}
