//! Order of the crate's modules, and words that none of them may use. See `ARCHITECTURE.md`.

use std::path::Path;

use tambour_fixtures::layers::{IMPURE_WORDS, LayerRules, declared_modules};

/// Groups of modules in order; each module may use those of earlier groups. Macros become Jinja, and templates print texts
/// whose macros are migrated at that moment, so these two use each other.
const ORDER: &[&[&str]] = &[
    &["script", "name", "print", "tokens"],
    &["lore"],
    &["role"],
    &["macros", "jinja"],
    &["card", "template"],
    &["skein"],
    &["dialogue"],
    &["catalogue"],
];

const LAYERS: LayerRules = LayerRules { forbidden_words: IMPURE_WORDS, is_allowed: may_use };

fn group_index(module: &str) -> Option<usize> {
    ORDER.iter().position(|group| group.contains(&module))
}

/// Returns whether module `from` may use module `to`.
fn may_use(from: &str, to: &str) -> bool {
    let peers = ["macros", "jinja"];
    group_index(from).zip(group_index(to)).is_some_and(|(from, to)| to < from)
        || peers.contains(&from) && peers.contains(&to)
}

#[test]
fn modules_use_only_what_comes_before_them() {
    let complaints = LAYERS.check_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_module_has_its_place() {
    let module_names: Vec<&str> = declared_modules(include_str!("../../src/lib.rs")).collect();
    assert!(module_names.len() > 10, "only {module_names:?}");
    for module in module_names {
        assert!(group_index(module).is_some(), "`{module}` has no place in the order of modules");
    }
}

#[test]
fn finds_edges_against_the_order() {
    let complaints = |path, source| LAYERS.check_source(path, source).len();
    assert_eq!(complaints("macros/write.rs", "use crate::jinja::is_filter;\n"), 0);
    assert_eq!(complaints("script/load.rs", "use crate::dialogue::Dialogue;\n"), 1);
    assert_eq!(complaints("dialogue/check.rs", "use crate::script::Script;\n"), 0);
    assert_eq!(complaints("lore/key.rs", "use super::super::card::Card;\n"), 1);
    assert_eq!(complaints("card/png.rs", "let text = std::fs::read(path);\n"), 1);
}
