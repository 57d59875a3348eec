//! The direction of the library's modules, and what none of them may touch. See `ARCHITECTURE.md`.

use std::path::Path;

/// Shared vocabulary: may be used by all, uses only itself.
const BASE: &[&str] = &["error", "finding", "span", "limits", "event", "texts"];

/// What a model's reply goes through, in order: each may use those before it.
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

/// Beside both halves: they use the vocabulary, `lex` and each other in this order. Used from `options` on.
const LEAVES: &[&str] =
    &["yaml", "privacy", "schema", "tool", "structure", "protocol", "exit", "state", "html"];

/// The checker of streams judges what the others make: it uses what they rest on, and only `verdict` and `catalogue` use it.
const CHECKER: &str = "contract";

/// What is sent to a model, in order: each may use those before it, and the leaves.
const OUTBOUND: &[&str] = &["script", "prompt"];

/// Stands on both halves.
const DIALOGUE: &str = "dialogue";

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
    let place = |order: &[&str], name: &str| order.iter().position(|module| *module == name);
    let before =
        |order: &[&str]| place(order, from).zip(place(order, to)).is_some_and(|(from, to)| to < from);
    let leaf = place(LEAVES, to).is_some();
    let from_on = |name: &str| place(INBOUND, from) >= place(INBOUND, name);
    if from == to || from == "lib" || BASE.contains(&to) {
        return true;
    }
    if place(LEAVES, from).is_some() {
        return to == "lex" || before(LEAVES);
    }
    if place(INBOUND, from).is_some() {
        let judges = to == CHECKER && from_on("verdict");
        let lists = from == "catalogue" && (to == DIALOGUE || place(OUTBOUND, to).is_some());
        return before(INBOUND) || leaf && from_on("options") || judges || lists;
    }
    if from == CHECKER {
        return leaf || place(INBOUND, to).is_some_and(|to| Some(to) <= place(INBOUND, "policy"));
    }
    let outbound = |name: &str| place(OUTBOUND, name).is_some();
    if outbound(from) {
        return before(OUTBOUND) || leaf || to == "lex";
    }
    from == DIALOGUE && (outbound(to) || leaf || place(INBOUND, to).is_some())
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
        let known = [BASE, INBOUND, LEAVES, OUTBOUND, &[CHECKER, DIALOGUE]]
            .iter()
            .any(|group| group.contains(&module));
        assert!(known, "`{module}` has no place in the order of modules");
    }
}

/// Names of files in a part of the page, those of folders too.
fn named(page: &str) -> std::collections::BTreeSet<&str> {
    let spans = page.split('`').skip(1).step_by(2);
    spans.flat_map(|span| span.split('/')).filter(|name| !name.is_empty()).collect()
}

/// Whether `page` has no word of the file `path` below `src` in a row of its folder.
fn unnamed(page: &str, path: &str) -> bool {
    let path = path.trim_end_matches(".rs");
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let part = |from: &str, to: &str| page.split(from).nth(1).and_then(|rest| rest.split(to).next());
    // What every folder may have is said once, and what those of dialects may have.
    let everywhere = page.split("\n| ").next().filter(|_| matches!(name, "mod" | "rules"));
    let dialects = part("A dialect's folder has", "\n\n").filter(|_| folders.starts_with("dialect/"));
    if everywhere.into_iter().chain(dialects).any(|text| named(text).contains(name)) {
        return false;
    }
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).map(named).collect();
    let mut inner = folders.rsplit('/');
    let folder = inner.find(|folder| rows.iter().any(|row| row.contains(folder)));
    !rows.iter().any(|row| folder.is_none_or(|folder| row.contains(folder)) && row.contains(name))
}

#[test]
fn the_page_names_every_file() {
    let page = include_str!("../../../../ARCHITECTURE.md");
    let library = page.split("\n## ").find(|part| part.starts_with("`crates/tambour/src`"));
    let library = library.expect("the page has a part on the library");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = tambour_fixtures::files(&source, "rs").expect("the sources are readable");
    let below = |path: &std::path::PathBuf| {
        let below = path.strip_prefix(&source).expect("it was found there");
        below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
    };
    let missing: Vec<String> =
        files.iter().map(below).filter(|path| path != "lib.rs" && unnamed(library, path)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md says nothing of {missing:?}");

    let page = "`mod` has types. A dialect's folder has `parse`.\n\n| folder | files |\n| --- | --- |\n| `lex/` | `scan` |\n| `plain/` | `lead` |\n";
    let missing = [
        "lex/scan.rs",
        "lex/lead.rs",
        "dialect/plain/lead.rs",
        "dialect/plain/parse.rs",
        "dialect/plain/scan.rs",
        "lex/mod.rs",
        "lex/rules.rs",
    ];
    let missing: Vec<&str> = missing.into_iter().filter(|path| unnamed(page, path)).collect();
    assert_eq!(missing, ["lex/lead.rs", "dialect/plain/scan.rs", "lex/rules.rs"]);
}

#[test]
fn finds_edges_against_the_order() {
    let complaints = |path, source| check(path, source).len();
    assert_eq!(complaints("lex/seam.rs", "use crate::span::Place;\nuse super::space::is_space;\n"), 0);
    assert_eq!(complaints("policy/mod.rs", "use crate::dialect::{Intent, Written};\n"), 0);
    assert_eq!(complaints("contract/check.rs", "use crate::sequence::Sequencer;\n"), 1);
    assert_eq!(complaints("pipeline.rs", "use crate::contract::Checker;\n"), 1);
    assert_eq!(complaints("verdict.rs", "use crate::contract::Checker;\n"), 0);
    assert_eq!(complaints("exit/decision.rs", "use crate::options::Options;\n"), 1);
    assert_eq!(complaints("tool/mod.rs", "use crate::schema::Schema;\n"), 0);
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
