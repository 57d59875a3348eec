//! Prose around an answer: it is the message of one that has none.

use serde_json::{Map, Value};

use super::outside::is_mark;

/// The prose so far.
#[derive(Debug)]
pub(super) struct Prose {
    before: String,
    behind: String,
    /// Whether the answer has begun, and in a fence.
    begun: bool,
    fenced: bool,
    /// Set where there is more than may be held, or where it is not asked for.
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

    /// Bytes that wait.
    pub(super) fn held(&self) -> usize {
        self.before.len() + self.behind.len()
    }

    /// Text outside of objects.
    pub(super) fn push(&mut self, text: &str) {
        if self.over {
            return;
        }
        if self.held() + text.len() > self.limit {
            return self.leave();
        }
        if self.begun { &mut self.behind } else { &mut self.before }.push_str(text);
    }

    /// An object that is no answer.
    pub(super) fn value(&mut self, value: Option<&Map<String, Value>>) {
        if let Some(text) = value.filter(|_| !self.over).and_then(|value| serde_json::to_string(value).ok()) {
            self.push(&text);
        }
    }

    /// The answer begins, perhaps in a fence.
    pub(super) fn begins(&mut self, fenced: bool) {
        (self.begun, self.fenced) = (true, fenced);
    }

    /// What has come is no prose.
    pub(super) fn forget(&mut self) {
        (self.before, self.behind) = (String::new(), String::new());
    }

    /// None is wanted any more.
    pub(super) fn leave(&mut self) {
        self.over = true;
        self.forget();
    }

    /// All of it, without the fence of the answer.
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
        // The rest of an answer whose brackets are wrong is shown to nobody.
        if behind.starts_with([',', '}', ']', ':']) {
            return None;
        }
        let texts: Vec<&str> = [before, behind].into_iter().filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}
