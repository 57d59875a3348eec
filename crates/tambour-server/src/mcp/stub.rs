//! Stub without the feature `mcp`: a configuration with MCP servers is refused.

use serde_json::Value;

use super::{Bounds, Listed};
use crate::config::McpConfig;
use crate::tools::Trouble;

/// Never constructed.
pub(super) enum Server {}

impl Server {
    pub(super) fn new(name: &str, _: McpConfig, _: Option<String>, _: Bounds) -> Server {
        unreachable!("the check of the configuration refuses `{name}`")
    }

    pub(super) fn is(&self, _: &McpConfig, _: Option<&str>, _: Bounds) -> bool {
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

    pub(super) fn listed(&self) -> Vec<Listed> {
        match *self {}
    }

    pub(super) fn tool(&self, _: &str) -> Option<Listed> {
        match *self {}
    }

    pub(super) fn is_known(&self) -> bool {
        match *self {}
    }

    pub(super) async fn reach(&self) -> bool {
        match *self {}
    }

    pub(super) async fn call(&self, _: &str, _: &Value) -> Result<Value, Trouble> {
        match *self {}
    }
}
