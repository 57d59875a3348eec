//! Checks of the dependencies between the modules of a crate, for its `layers` test.

use std::path::Path;

/// Words that indicate impure code: files, sockets, clocks, environment, output, hidden state.
pub const IMPURE_WORDS: &[&str] = &[
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

/// Rules that the modules of a crate must keep.
#[derive(Clone, Copy, Debug)]
pub struct LayerRules {
    /// Words that no source file may have outside comments and tests.
    pub forbidden_words: &'static [&'static str],
    /// Returns `true` if the first module may use the second module. Both are modules directly below
    /// `src`.
    pub is_allowed: fn(&str, &str) -> bool,
}

impl LayerRules {
    /// Checks all source files below the folder `source`, except `tests.rs`, and returns complaints.
    #[must_use]
    pub fn check_all(&self, source: &Path) -> Vec<String> {
        let files = crate::list_files(source, "rs").expect("the sources are readable");
        let sources = files.iter().filter(|path| path.file_name().is_some_and(|name| name != "tests.rs"));
        let complaints = sources.flat_map(|path| {
            let relative_path = path.strip_prefix(source).expect("it was found there");
            let segments: Vec<_> = relative_path.iter().map(|segment| segment.to_string_lossy()).collect();
            self.check_source(
                &segments.join("/"),
                &std::fs::read_to_string(path).expect("a source file is text"),
            )
        });
        complaints.collect()
    }

    /// Checks the text of one source file, `path` below `src`, and returns complaints. A name at the root of
    /// the crate that is not a module, such as a re-export, hides the module it is from and is refused;
    /// `lib.rs` may use all names.
    #[must_use]
    pub fn check_source(&self, path: &str, source: &str) -> Vec<String> {
        let modules: Vec<&str> =
            path.trim_end_matches(".rs").split('/').filter(|name| *name != "mod").collect();
        let module_name = modules[0];
        let mut complaints = Vec::new();
        // Tests, at the end of a file, may use any module.
        let code = source.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            // Types of IP addresses do no networking.
            let line = line.split("//").next().unwrap_or_default().replace("std::net::Ip", "");
            for word in self.forbidden_words.iter().filter(|word| line.contains(**word)) {
                complaints.push(format!("{path}:{}: `{word}`", number + 1));
            }
        }
        for name in used_names(code, modules.len()) {
            // An exported macro is at the root of the crate, wherever it is defined.
            if code.contains(&format!("macro_rules! {name} ")) {
                continue;
            }
            let is_module = name.chars().next().is_some_and(char::is_lowercase);
            if is_module
                && module_name != name
                && module_name != "lib"
                && !(self.is_allowed)(module_name, &name)
            {
                complaints.push(format!("{path}: `{module_name}` uses `{name}`"));
            } else if !is_module && module_name != "lib" {
                complaints.push(format!("{path}: `crate::{name}` hides the module it is from"));
            }
        }
        complaints
    }
}

/// Lists the modules that the text of a `lib.rs` declares.
pub fn declared_modules(library: &str) -> impl Iterator<Item = &str> {
    let lines = library.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    lines.filter_map(|declaration| declaration.strip_suffix(';'))
}

/// Lists the names at the root of the crate that `code` uses through `crate::` or through `depth` times
/// `super::`; `depth` is the number of levels from the root down to the module of `code`.
fn used_names(code: &str, depth: usize) -> Vec<String> {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let super_path = "super::".repeat(depth);
    let mut names = Vec::new();
    for root in ["crate::", super_path.as_str()] {
        for (at, _) in code.match_indices(root) {
            if code[..at].ends_with([':', '$']) || code[..at].ends_with(char::is_alphanumeric) {
                continue;
            }
            let path = &code[at + root.len()..];
            match path.strip_prefix('{') {
                Some(group) => names.extend(first_names(group)),
                None => names.push(leading_name(path)),
            }
        }
    }
    names.retain(|name| !matches!(name.as_str(), "" | "super"));
    names.sort();
    names.dedup();
    names
}

/// Name at the beginning of a text; empty without one.
fn leading_name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Lists the first segments of the paths in a `{...}` group.
fn first_names(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut names = Vec::new();
    let mut is_path_start = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_path_start = true,
            c if is_path_start && !c.is_whitespace() => {
                names.push(leading_name(&group[at..]));
                is_path_start = false;
            }
            _ => {}
        }
    }
    names
}
