//! The direction of the library's modules, and what none of them may touch. See "Direction" in `ARCHITECTURE.md`.

use std::path::Path;

/// Shared vocabulary: may be used by all, uses only itself.
const BASE: &[&str] = &["error", "finding", "span", "limits", "event", "texts"];

/// What a model's reply goes through, in order: each may use those before it.
const INBOUND: &[&str] = &[
    "lex",
    "repair",
    "options",
    "dialect",
    "contract",
    "sequence",
    "pipeline",
    "encode",
    "verdict",
    "catalogue",
];

/// Used from `options` on; they use the vocabulary and `lex`.
const LEAVES: &[&str] = &["state", "tool", "html", "privacy"];

/// What is sent to a model, in order: each may use those before it, and the leaves. Readers of replies may use them (a
/// round of a dialogue ends with a decision), never the other way round.
const OUTBOUND: &[&str] = &["script", "prompt", "dialogue"];

/// What the library never does: files, sockets, clocks, environment, output, hidden state.
const FORBIDDEN: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::time",
    "std::process",
    "std::thread",
    "tokio",
    "println!",
    "print!",
    "dbg!",
    "thread_local!",
    "static mut",
];

/// Whether module `from` may use module `to`.
fn allowed(from: &str, to: &str) -> bool {
    let inbound = |name: &str| INBOUND.iter().position(|module| *module == name);
    let outbound = |name: &str| OUTBOUND.iter().position(|module| *module == name);
    let leaf = |name: &str| LEAVES.contains(&name);
    if from == to || from == "lib" || BASE.contains(&to) {
        return true;
    }
    if leaf(from) {
        return to == "lex";
    }
    if let Some(from) = inbound(from) {
        return match inbound(to) {
            Some(to) => to < from,
            None => (leaf(to) || to == "dialogue") && from >= 2,
        };
    }
    if let Some(from) = outbound(from) {
        return outbound(to).is_some_and(|to| to < from) || leaf(to) || to == "lex";
    }
    false
}

/// Complaints about one source file, `path` below `src`.
fn check(path: &str, source: &str) -> Vec<String> {
    let modules: Vec<&str> = path.trim_end_matches(".rs").split('/').filter(|name| *name != "mod").collect();
    let own = modules[0];
    let mut complaints = Vec::new();
    // The tests of a module may use what they like; they come last in a file.
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    for (number, line) in code.lines().enumerate() {
        // Reading an address out of text is no networking.
        let line = line.split("//").next().unwrap_or_default().replace("std::net::Ip", "");
        for word in FORBIDDEN.iter().filter(|word| line.contains(**word)) {
            complaints.push(format!("{path}:{}: `{word}`", number + 1));
        }
    }
    for name in used(code, modules.len()) {
        let module = name.chars().next().is_some_and(char::is_lowercase);
        if module && !allowed(own, &name) {
            complaints.push(format!("{path}: `{own}` uses `{name}`"));
        } else if !module && own != "lib" {
            complaints.push(format!("{path}: `crate::{name}` hides the module it is from"));
        }
    }
    complaints
}

/// Names directly below the crate that `code`, in a module of that depth, uses.
fn used(code: &str, depth: usize) -> Vec<String> {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let up = "super::".repeat(depth);
    let mut names = Vec::new();
    for root in ["crate::", up.as_str()] {
        for (at, _) in code.match_indices(root) {
            if code[..at].ends_with([':', '$']) || code[..at].ends_with(char::is_alphanumeric) {
                continue;
            }
            let rest = &code[at + root.len()..];
            match rest.strip_prefix('{') {
                Some(group) => names.extend(first_names(group)),
                None => names.push(name(rest)),
            }
        }
    }
    names.retain(|name| !matches!(name.as_str(), "" | "super"));
    names.sort();
    names.dedup();
    names
}

fn name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first segments of the paths in a `{...}` group.
fn first_names(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    let mut start = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                names.push(name(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn modules_use_only_what_comes_before_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = tambour_fixtures::files(&source, "rs").expect("the sources are readable");
    assert!(files.len() > 20, "only {} files", files.len());
    let complaints: Vec<String> = files
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| name != "tests.rs"))
        .flat_map(|path| {
            let below = path.strip_prefix(&source).expect("it was found there");
            let below: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
            check(&below.join("/"), &std::fs::read_to_string(path).expect("a source file is text"))
        })
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_module_has_its_place() {
    let library = include_str!("../../src/lib.rs");
    for line in library.lines() {
        let module = line.trim_start_matches("pub ").strip_prefix("mod ");
        let Some(module) = module.and_then(|rest| rest.strip_suffix(';')) else { continue };
        let known = [BASE, INBOUND, LEAVES, OUTBOUND].iter().any(|group| group.contains(&module));
        assert!(known, "`{module}` has no place in the order of modules");
    }
}

#[test]
fn finds_edges_against_the_order() {
    let complaints = |path, source| check(path, source).len();
    assert_eq!(complaints("lex/markup.rs", "use crate::span::Place;\nuse super::space::is_space;\n"), 0);
    assert_eq!(complaints("contract/policy.rs", "use crate::dialect::{Intent, Written};\n"), 0);
    assert_eq!(complaints("dialect/mod.rs", "/// As [`crate::pipeline`] says.\nmod plain;\n"), 0);
    assert_eq!(complaints("lex/markup.rs", "use crate::dialect::Intent;\n"), 1);
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
