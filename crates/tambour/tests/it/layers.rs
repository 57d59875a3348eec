//! Order of the library's modules, and words that none of them may use. See `ARCHITECTURE.md`.

use std::path::Path;

use tambour_fixtures::layers::{IMPURE_WORDS, LayerRules, declared_modules};

/// Shared vocabulary: usable by all modules, uses only itself.
const BASE: &[&str] = &["error", "finding", "span", "limits", "event", "texts"];

/// Stages of a model's reply in order; each may use the ones before it.
const INBOUND: &[&str] = &[
    "lex",
    "repair",
    "options",
    "dialect",
    "settings",
    "policy",
    "sequence",
    "pipeline",
    "encode",
    "verdict",
    "catalogue",
];

/// Leaves: modules that use the vocabulary, `lex` and each other in this order; usable from `options` on.
const LEAVES: &[&str] =
    &["yaml", "privacy", "schema", "tool", "structure", "protocol", "exit", "state", "html", "grammar"];

/// Checker of streams: independent of the stages after `policy`; only `verdict` and `catalogue` use it.
const CHECKER: &str = "contract";

const LAYERS: LayerRules = LayerRules { forbidden_words: IMPURE_WORDS, is_allowed: may_use };

/// Returns whether module `from` may use module `to`.
fn may_use(from: &str, to: &str) -> bool {
    let place = |order: &[&str], name: &str| order.iter().position(|module| *module == name);
    let before =
        |order: &[&str]| place(order, from).zip(place(order, to)).is_some_and(|(from, to)| to < from);
    let is_leaf = place(LEAVES, to).is_some();
    let is_at_or_after = |name: &str| place(INBOUND, from) >= place(INBOUND, name);
    if BASE.contains(&to) {
        return true;
    }
    if place(LEAVES, from).is_some() {
        return to == "lex" || before(LEAVES);
    }
    if place(INBOUND, from).is_some() {
        return before(INBOUND)
            || is_leaf && is_at_or_after("options")
            || to == CHECKER && is_at_or_after("verdict");
    }
    from == CHECKER && (is_leaf || place(INBOUND, to).is_some_and(|to| Some(to) <= place(INBOUND, "policy")))
}

#[test]
fn modules_use_only_what_comes_before_them() {
    let complaints = LAYERS.check_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_module_has_its_place() {
    let module_names: Vec<&str> = declared_modules(include_str!("../../src/lib.rs")).collect();
    assert!(module_names.len() > 20, "only {module_names:?}");
    for module in module_names {
        let has_place = [BASE, INBOUND, LEAVES, &[CHECKER]].iter().any(|group| group.contains(&module));
        assert!(has_place, "`{module}` has no place in the order of modules");
    }
}

#[test]
fn finds_edges_against_the_order() {
    let complaints = |path, source| LAYERS.check_source(path, source).len();
    assert_eq!(complaints("lex/seam.rs", "use crate::span::Place;\nuse super::space::is_space;\n"), 0);
    assert_eq!(complaints("policy/mod.rs", "use crate::dialect::{Intent, Written};\n"), 0);
    assert_eq!(complaints("contract/check.rs", "use crate::sequence::Sequencer;\n"), 1);
    assert_eq!(complaints("pipeline.rs", "use crate::contract::Checker;\n"), 1);
    assert_eq!(complaints("verdict.rs", "use crate::contract::Checker;\n"), 0);
    assert_eq!(complaints("exit.rs", "use crate::options::Options;\n"), 1);
    assert_eq!(complaints("tool.rs", "use crate::schema::Schema;\n"), 0);
    assert_eq!(complaints("schema/mod.rs", "use crate::tool::Tool;\n"), 1);
    assert_eq!(complaints("dialect/mod.rs", "/// As [`crate::pipeline`] says.\nmod plain;\n"), 0);
    assert_eq!(complaints("lex/seam.rs", "use crate::dialect::Intent;\n"), 1);
    assert_eq!(complaints("lex/code/mod.rs", "use crate::{span::Place, sequence::{Trim, Sequencer}};\n"), 1);
    assert_eq!(complaints("repair/json/mod.rs", "fn f() -> crate::pipeline::End {\n"), 1);
    assert_eq!(complaints("dialect/plain/parse.rs", "use super::super::super::sequence::Trim;\n"), 1);
    assert_eq!(complaints("dialect/plain/parse.rs", "use super::super::entry;\n"), 0);
    assert_eq!(complaints("privacy.rs", "use crate::dialect::Intent;\n"), 1);
    assert_eq!(complaints("event/mod.rs", "use crate::Options;\n"), 1);
    assert_eq!(complaints("lex/utf8.rs", "let text = std::fs::read(path);\n"), 1);
    assert_eq!(
        complaints("lex/utf8.rs", "// std::fs is not for us\n#[cfg(test)]\nuse crate::pipeline;\n"),
        0
    );
}
