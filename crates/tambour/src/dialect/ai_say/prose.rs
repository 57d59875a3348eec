//! Prose around an answer, which becomes the message if the answer has none.

use serde_json::{Map, Value};

use super::outside::is_mark;

/// The prose collected so far.
#[derive(Debug)]
pub(super) struct Prose {
    before: String,
    behind: String,
    /// Set once the answer has begun.
    begun: bool,
    /// Set if the answer began in a fence.
    fenced: bool,
    /// Set when the prose exceeds the hold limit or is not needed.
    over: bool,
    limit: usize,
}

impl Prose {
    pub(super) fn new(limit: usize) -> Prose {
        Prose {
            before: String::new(),
            behind: String::new(),
            begun: false,
            fenced: false,
            over: false,
            limit,
        }
    }

    /// Bytes held back.
    pub(super) fn held(&self) -> usize {
        self.before.len() + self.behind.len()
    }

    /// Adds text outside the objects.
    pub(super) fn push(&mut self, text: &str) {
        if self.over {
            return;
        }
        if self.held() + text.len() > self.limit {
            return self.leave();
        }
        if self.begun { &mut self.behind } else { &mut self.before }.push_str(text);
    }

    /// Adds an object that is not an answer.
    pub(super) fn value(&mut self, value: Option<&Map<String, Value>>) {
        if let Some(text) = value.filter(|_| !self.over).and_then(|value| serde_json::to_string(value).ok()) {
            self.push(&text);
        }
    }

    /// Begins the answer, which may be in a fence.
    pub(super) fn begins(&mut self, fenced: bool) {
        (self.begun, self.fenced) = (true, fenced);
    }

    /// Discards the prose collected so far.
    pub(super) fn forget(&mut self) {
        (self.before, self.behind) = (String::new(), String::new());
    }

    /// Stops collecting and discards the prose.
    pub(super) fn leave(&mut self) {
        self.over = true;
        self.forget();
    }

    /// Takes all prose, without the fence of the answer.
    pub(super) fn take(&mut self) -> Option<String> {
        let (before, behind) = (std::mem::take(&mut self.before), std::mem::take(&mut self.behind));
        let (mut before, mut behind) = (before.trim(), behind.trim());
        if self.fenced {
            let (rest, line) = before.rsplit_once('\n').unwrap_or(("", before));
            if is_mark(line.trim()) {
                before = rest.trim_end();
            }
        }
        let (line, rest) = behind.split_once('\n').unwrap_or((behind, ""));
        if is_mark(line.trim()) {
            behind = rest.trim_start();
        }
        // The remains of an answer with mismatched brackets must not reach the user.
        if behind.starts_with([',', '}', ']', ':']) {
            return None;
        }
        let texts: Vec<&str> = [before, behind].into_iter().filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}
