//! Limits on hostile input, all in one place.

use serde::{Deserialize, Serialize};

/// Maximum number of queries of one reply (T-045).
#[doc(hidden)]
pub const MAX_QUERIES: usize = 5;
/// Maximum length of a query in Unicode scalar values (T-047, R-10).
#[doc(hidden)]
pub const MAX_QUERY_CHARS: usize = 80;

/// Size, depth and count limits. A reply beyond `input` is closed and ends with `error`. Where a field states
/// nothing else, input beyond its limit is treated as text, with the finding `limit_exceeded`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one reply.
    pub input: usize,
    /// Nesting depth of JSON values and of markup elements.
    pub depth: usize,
    /// Bytes of text that may be held back where its role depends on what follows (J-016, R-06, R-22, X-013),
    /// and bytes of one title, summary or queries block, which are delivered as a whole.
    pub hold: usize,
    /// Bytes of text in one JSON object that is buffered because it may act (a plan, the answer of a round);
    /// a larger one does not act. Also bounds the answer of a plan while the mode of the plan is not known
    /// and JSON values that are searched for in a text.
    pub value: usize,
    /// Values and keys of one JSON object that is buffered because it may act.
    pub items: usize,
    /// Bytes of one tag, from `<` to `>`.
    pub tag: usize,
    /// Bytes held back in an open code span, from a tag in it to the end of the span or line (T-029).
    pub line: usize,
    /// Phases of one reply.
    pub phases: usize,
    /// Findings listed for one reply; further ones are only counted, and the last entry reports the count.
    pub findings: usize,
    /// Bytes of one text delta; a longer one is split (J-039).
    pub delta: usize,
    /// Non-blank bytes after which the dialect of a reply is decided.
    pub detect: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            input: Limits::DEFAULT_INPUT,
            depth: 128,
            hold: 64 << 10,
            value: 4 << 20,
            items: 64 << 10,
            tag: 1 << 10,
            line: 1 << 10,
            phases: 1000,
            findings: 1000,
            delta: 2 << 10,
            detect: 256,
        }
    }
}

impl Limits {
    /// Default of [`Limits::input`].
    #[doc(hidden)]
    pub const DEFAULT_INPUT: usize = 16 << 20;

    /// Maximum number of bytes of text held back after any byte of the reply, the sum of:
    ///
    /// - two tags: an unfinished one, and one before it that may continue after a removed tag;
    /// - a line with a tag in an open code span, or the 1,024 bytes that may precede the title of a phase;
    /// - 64 bytes for the start of a marker or of a character.
    ///
    /// The sum does not include text that `hold` bounds (see there), or text that `value` bounds: an answer
    /// of a plan that precedes the mode of the plan, or is in a list or under a key.
    #[must_use]
    pub fn max_held_bytes(&self) -> usize {
        2 * self.tag + self.line.max(1 << 10) + 64
    }
}

/// Limits of the state of a conversation and of the operations on it. An operation that exceeds one is
/// refused with the reason `limit_exceeded`; a state that is already larger may shrink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct StateLimits {
    /// Operations of one block.
    pub operations: usize,
    /// Bytes of one path.
    pub path: usize,
    /// Steps of a path, and levels of the state below its root.
    pub depth: usize,
    /// Bytes of text, keys included, of one value that is set or appended.
    pub value: usize,
    /// Elements of one list.
    pub list: usize,
    /// Values of the whole state, objects and lists included.
    pub values: usize,
    /// Bytes of text, keys included, of the whole state.
    pub bytes: usize,
}

impl Default for StateLimits {
    fn default() -> StateLimits {
        StateLimits {
            operations: 10_000,
            path: 1 << 10,
            depth: 64,
            value: 64 << 10,
            list: 10_000,
            values: 100_000,
            bytes: 4 << 20,
        }
    }
}

/// Limits of imported files: cards, lorebooks, presets. A file beyond one is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportLimits {
    /// Bytes of the file.
    pub file: usize,
    /// Bytes of its JSON, including JSON in a chunk of a picture or in an archive.
    pub text: usize,
    /// Chunks of a picture.
    pub chunks: usize,
    /// Files in an archive.
    pub files: usize,
    /// Bytes of all files of an archive after unpacking.
    pub unpacked: u64,
    /// Nesting depth of the JSON.
    pub depth: usize,
    /// Values and keys of the JSON.
    pub values: usize,
    /// Bytes of memory that the values of the JSON take.
    pub memory: usize,
    /// Bytes of the compiled regular expressions of a book, counting those rejected as too large.
    pub patterns: usize,
    /// Entries of a book.
    pub entries: usize,
    /// Warnings listed; further ones are counted.
    pub warnings: usize,
}

impl Default for ImportLimits {
    fn default() -> ImportLimits {
        ImportLimits {
            file: 64 << 20,
            text: 16 << 20,
            chunks: 10_000,
            files: 4_000,
            unpacked: 512 << 20,
            depth: 48,
            values: 500_000,
            memory: 80 << 20,
            patterns: 192 << 20,
            entries: 20_000,
            warnings: 200,
        }
    }
}
