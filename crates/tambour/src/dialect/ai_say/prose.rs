//! Prose around an answer, which becomes the message if the answer has none.

use serde_json::{Map, Value};

use super::prose_extents::is_blank_or_fence;

/// The prose collected so far.
#[derive(Debug)]
pub(super) struct AnswerProse {
    text_before: String,
    text_after: String,
    /// Set once the answer has begun.
    has_begun: bool,
    /// Set if the answer began in a fence.
    is_fenced: bool,
    /// Set when the prose exceeds the hold limit or is not needed.
    is_discarding: bool,
    limit: usize,
}

impl AnswerProse {
    pub(super) fn new(limit: usize) -> AnswerProse {
        AnswerProse {
            text_before: String::new(),
            text_after: String::new(),
            has_begun: false,
            is_fenced: false,
            is_discarding: false,
            limit,
        }
    }

    /// Bytes held back.
    pub(super) fn held_bytes(&self) -> usize {
        self.text_before.len() + self.text_after.len()
    }

    /// Adds text outside the objects.
    pub(super) fn push(&mut self, text: &str) {
        if self.is_discarding {
            return;
        }
        if self.held_bytes() + text.len() > self.limit {
            return self.stop();
        }
        if self.has_begun { &mut self.text_after } else { &mut self.text_before }.push_str(text);
    }

    /// Adds an object that is not an answer.
    pub(super) fn push_object(&mut self, value: Option<&Map<String, Value>>) {
        if let Some(text) =
            value.filter(|_| !self.is_discarding).and_then(|value| serde_json::to_string(value).ok())
        {
            self.push(&text);
        }
    }

    /// Begins the answer, which may be in a fence.
    pub(super) fn begin_answer(&mut self, is_fenced: bool) {
        (self.has_begun, self.is_fenced) = (true, is_fenced);
    }

    /// Discards the prose collected so far.
    pub(super) fn clear(&mut self) {
        (self.text_before, self.text_after) = (String::new(), String::new());
    }

    /// Stops collecting and discards the prose.
    pub(super) fn stop(&mut self) {
        self.is_discarding = true;
        self.clear();
    }

    /// Takes all prose, without the fence of the answer.
    pub(super) fn take(&mut self) -> Option<String> {
        let (before, after) = (std::mem::take(&mut self.text_before), std::mem::take(&mut self.text_after));
        let (mut before, mut after) = (before.trim(), after.trim());
        if self.is_fenced {
            let (rest, line) = before.rsplit_once('\n').unwrap_or(("", before));
            if is_blank_or_fence(line.trim()) {
                before = rest.trim_end();
            }
        }
        let (line, rest) = after.split_once('\n').unwrap_or((after, ""));
        if is_blank_or_fence(line.trim()) {
            after = rest.trim_start();
        }
        // The remains of an answer with mismatched brackets must not reach the user.
        if after.starts_with([',', '}', ']', ':']) {
            return None;
        }
        let texts: Vec<&str> = [before, after].into_iter().filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}
