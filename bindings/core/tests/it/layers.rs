//! The crate is pure, and its modules stand on each other in one order.

use std::path::Path;

use tambour_fixtures::layers::{IMPURE_WORDS, LayerRules, declared_modules};

/// Modules in order; each may use the ones before it.
const ORDER: &[&str] = &[
    "records",
    "types",
    "options",
    "input_end",
    "json",
    "partial",
    "state",
    "replies",
    "batch",
    "prompts",
    "dialogue",
];

const LAYERS: LayerRules = LayerRules { forbidden_words: IMPURE_WORDS, is_allowed: may_use };

fn may_use(from: &str, to: &str) -> bool {
    let place = |name: &str| ORDER.iter().position(|module| *module == name);
    place(from).zip(place(to)).is_some_and(|(from, to)| to < from)
}

#[test]
fn modules_use_only_what_comes_before_them() {
    let complaints = LAYERS.check_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_module_has_its_place() {
    let modules: Vec<&str> = declared_modules(include_str!("../../src/lib.rs")).collect();
    assert_eq!(modules.len(), ORDER.len());
    assert!(modules.iter().all(|module| ORDER.contains(module)), "{modules:?}");
}
