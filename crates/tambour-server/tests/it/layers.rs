//! The direction of the server's modules. See `ARCHITECTURE.md`.

use std::path::Path;

use tambour_fixtures::layers::{LayerRules, declared_modules};

/// Modules from bottom to top: each may use those before it.
const ORDER: &[&str] =
    &["store", "telemetry", "upstream", "base", "tools", "mcp", "config", "record", "run", "http", "serve"];

/// Modules of one layer, which know nothing of each other.
const STRANGERS: &[&[&str]] = &[&["store", "telemetry", "upstream", "tools"], &["store", "mcp"]];

const LAYERS: LayerRules = LayerRules { forbidden_words: &[], is_allowed };

/// Returns whether module `from` may use module `to`.
fn is_allowed(from: &str, to: &str) -> bool {
    let place = |name: &str| ORDER.iter().position(|module| *module == name);
    // Calls of models and of webhooks have spans.
    let is_traced = to == "telemetry" && from != "store";
    let are_strangers = STRANGERS.iter().any(|layer| layer.contains(&from) && layer.contains(&to));
    place(from).zip(place(to)).is_some_and(|(from, to)| to < from) && (is_traced || !are_strangers)
}

#[test]
fn modules_use_only_what_comes_before_them() {
    let complaints = LAYERS.check_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_module_has_its_place() {
    let declared: Vec<&str> = declared_modules(include_str!("../../src/lib.rs")).collect();
    // Store, telemetry and upstreams are of other crates, under the names of modules.
    assert_eq!(declared.len() + 3, ORDER.len(), "{declared:?}");
    for module in declared {
        assert!(ORDER.contains(&module), "`{module}` has no place in the order of modules");
    }
}

#[test]
fn finds_edges_against_the_order() {
    let complaints = |path, source| LAYERS.check_source(path, source).len();
    assert_eq!(complaints("run/states.rs", "use crate::base::ids;\nuse crate::store::Store;\n"), 0);
    assert_eq!(complaints("run/runner/mod.rs", "use super::live_run::LiveRun;\n"), 0);
    assert_eq!(complaints("run/engine.rs", "use crate::http::streams::StreamRegistry;\n"), 1);
    assert_eq!(complaints("base/problem.rs", "use crate::{base::ids, store::StoreError};\n"), 0);
    assert_eq!(complaints("base/problem.rs", "use crate::{base::ids, tools::Definition};\n"), 1);
    assert_eq!(complaints("tools/webhook/mod.rs", "use super::super::mcp::McpConfig;\n"), 1);
    assert_eq!(complaints("mcp/config.rs", "use crate::tools::ToolLimits;\n"), 0);
    assert_eq!(complaints("mcp/mod.rs", "use crate::config::Config;\n"), 1);
    assert_eq!(complaints("tools/webhook.rs", "use crate::telemetry::TraceSpan;\n"), 0);
    assert_eq!(complaints("tools/webhook.rs", "use crate::upstream::Message;\n"), 1);
    assert_eq!(complaints("tools/desk.rs", "use crate::store::ToolRow;\n"), 1);
    assert_eq!(complaints("serve/mod.rs", "use crate::http::app::App;\n"), 0);
    assert_eq!(complaints("http/cors.rs", "use crate::serve::Server;\n"), 1);
    assert_eq!(complaints("record/mod.rs", "/// As [`crate::run`] says.\nmod fold;\n"), 0);
}
