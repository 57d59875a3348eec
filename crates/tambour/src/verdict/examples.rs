//! Checks of the fenced examples in Markdown documents (P-037).

use std::borrow::Cow;

use super::{Contract, Verdict};
use crate::contract::FencedExample;
use crate::dialect::{self, DialectEntry, ExampleStyle};
use crate::options::Options;

/// Form of recorded event streams in Markdown documents: a fenced block whose fence is not part of the transcript.
const TRANSCRIPT_EXAMPLES: ExampleStyle =
    ExampleStyle { languages: &["sse", "jsonl", "ndjson"], includes_fence: false };

/// Fence languages that several dialects share.
const SHARED_LANGUAGES: &[&str] = &["xml", "html", "json"];

/// Dialect that any text matches.
const PLAIN: &str = "plain";
/// Dialect that any JSON matches.
const JSON_VALUE: &str = "json_value";

impl Contract {
    /// Returns whether a fenced block of a Markdown document is an example for this contract (P-037). The
    /// language of the block names this dialect only; or it is one that this dialect shares with others, and
    /// the text is not detected as another dialect (any JSON counts for `json_value`); or it is missing,
    /// `text`, or shared by others, and the text is detected as this dialect.
    #[doc(hidden)]
    #[must_use]
    pub fn matches_example(self, example: &FencedExample<'_>) -> bool {
        let entry = match self {
            Contract::Events => return TRANSCRIPT_EXAMPLES.languages.contains(&example.language.as_str()),
            Contract::Dialect(entry) => entry,
        };
        let language = example.language.as_str();
        let lists_language = |entry: &DialectEntry| entry.examples.languages.contains(&language);
        let is_shared = SHARED_LANGUAGES.contains(&language);
        if lists_language(entry) && !is_shared {
            return true;
        }
        let detected = dialect::detect(&example.text);
        let is_distinct = detected.name != PLAIN && detected.name != dialect::AUTO;
        if lists_language(entry) {
            // With a shared language, a text that is detected as another dialect is no example for this one,
            // except that any JSON is a `json_value`.
            return !is_distinct || detected.name == entry.name || entry.name == JSON_VALUE;
        }
        let is_unlabelled = is_shared || matches!(language, "" | "text" | "txt");
        if entry.name == dialect::AUTO {
            // Any text is `plain`, so only dialects with a distinct format have examples.
            return lists_language(detected) || (is_unlabelled && !detected.examples.languages.is_empty());
        }
        is_unlabelled && detected.name == entry.name
    }

    /// Checks a fenced block against the contract; findings have the places of its document.
    #[doc(hidden)]
    #[must_use]
    pub fn check_example(self, example: &FencedExample<'_>, options: &Options) -> Verdict {
        let includes_fence = match self {
            Contract::Dialect(entry) if entry.name == dialect::AUTO => {
                dialect::detect(&example.text).examples.includes_fence
            }
            Contract::Dialect(entry) => entry.examples.includes_fence,
            Contract::Events => TRANSCRIPT_EXAMPLES.includes_fence,
        };
        let example =
            if includes_fence { Cow::Owned(example.clone().with_fence()) } else { Cow::Borrowed(example) };
        let mut verdict = self.check(example.text.as_bytes(), options);
        let findings = std::mem::take(&mut verdict.findings);
        verdict.findings = findings.into_iter().map(|finding| example.relocate(finding)).collect();
        verdict
    }
}
