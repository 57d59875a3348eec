//! Counting of tokens, for the server and the commands. An encoding is loaded when it is first used, which
//! takes some tenths of a second.

use serde::{Deserialize, Serialize};
use tambour_prompt::tokens;
use tiktoken_rs::CoreBPE;

/// Method of counting tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tokenizer {
    /// The encoding of newer OpenAI models.
    #[default]
    O200k,
    /// The encoding of GPT-4.
    Cl100k,
    /// Estimate: four ASCII characters, or one other character, per token.
    Estimate,
}

impl Tokenizer {
    /// All tokenizers, the default first.
    pub const ALL: [Tokenizer; 3] = [Tokenizer::O200k, Tokenizer::Cl100k, Tokenizer::Estimate];

    /// Returns the name in requests and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::O200k => "o200k",
            Tokenizer::Cl100k => "cl100k",
            Tokenizer::Estimate => "estimate",
        }
    }

    /// Returns the tokenizer with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Tokenizer> {
        Tokenizer::ALL.into_iter().find(|tokenizer| tokenizer.name() == name)
    }

    /// Returns the description for users.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Tokenizer::O200k => "Encoding of newer OpenAI models",
            Tokenizer::Cl100k => "Encoding of GPT-4",
            Tokenizer::Estimate => "Quarter of a token for an ASCII character, one token for any other",
        }
    }

    /// Counts the tokens of a text. An encoding counts exactly, except that a text of more than 64 KiB is
    /// counted in parts: a part ends where white space separates tokens, or, without such a place, perhaps
    /// within a token.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self {
            Tokenizer::O200k => count_encoded(tiktoken_rs::o200k_base_singleton(), text),
            Tokenizer::Cl100k => count_encoded(tiktoken_rs::cl100k_base_singleton(), text),
            Tokenizer::Estimate => tokens::estimate_tokens(text),
        }
    }
}

/// Maximum number of bytes that are encoded at once: the encoder backtracks over runs of white space, and
/// panics on a run that is too long for its stack.
const MAX_ENCODED: usize = 64 << 10;

fn count_encoded(encoding: &CoreBPE, mut text: &str) -> usize {
    let mut count = 0;
    while !text.is_empty() {
        let (first_part, remaining_text) = text.split_at(first_part_len(text));
        count += encoding.encode_ordinary(first_part).len();
        text = remaining_text;
    }
    count
}

/// Returns the length in bytes of the first part to encode: up to the last place within `MAX_ENCODED` that no
/// token reaches across. Without such a place, the part is as long as allowed.
fn first_part_len(text: &str) -> usize {
    if text.len() <= MAX_ENCODED {
        return text.len();
    }
    let max_len = text.floor_char_boundary(MAX_ENCODED);
    let mut following = text[max_len..].chars().next();
    for (offset, c) in text[..max_len].char_indices().rev() {
        if following.is_some_and(|next| is_token_boundary(c, next)) {
            return offset + c.len_utf8();
        }
        following = Some(c);
    }
    max_len
}

/// Returns `true` if no token reaches from `c` to the `next` character, whatever is before and after them. In
/// the patterns of the encodings, white space other than a line break begins a token or follows white space,
/// and after a line break a token has only white space and slashes.
fn is_token_boundary(c: char, next: char) -> bool {
    let is_line_break = |c: char| matches!(c, '\r' | '\n');
    if is_line_break(c) {
        !next.is_whitespace() && next != '/'
    } else {
        !c.is_whitespace() && next.is_whitespace() && !is_line_break(next)
    }
}

#[cfg(test)]
mod tests {
    use tiktoken_rs::CoreBPE;

    use super::{MAX_ENCODED, Tokenizer, first_part_len, is_token_boundary};

    fn encodings() -> [&'static CoreBPE; 2] {
        [tiktoken_rs::o200k_base_singleton(), tiktoken_rs::cl100k_base_singleton()]
    }

    #[test]
    fn requests_and_options_have_the_same_names() {
        assert_eq!(Tokenizer::ALL[0], Tokenizer::default());
        for tokenizer in Tokenizer::ALL {
            assert_eq!(serde_json::json!(tokenizer), tokenizer.name());
        }
    }

    /// The expected counts are those of OpenAI's own encoder (F-006).
    #[test]
    fn texts_have_the_tokens_of_their_encoding() {
        for (text, o200k, cl100k) in [
            ("", 0, 0),
            ("Hello, world!", 4, 4),
            ("tiktoken is great!", 6, 6),
            ("antidisestablishmentarianism", 6, 6),
            ("2 + 2 = 4", 7, 7),
            ("お誕生日おめでとう", 8, 9),
        ] {
            assert_eq!(
                (Tokenizer::O200k.count(text), Tokenizer::Cl100k.count(text)),
                (o200k, cl100k),
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_counted_in_parts_has_as_many_tokens_as_encoded_at_once() {
        // A line break after a full stop or comma is white space, but there is no boundary before it.
        for unit in [
            "a.\n\n",
            "好。\n",
            "One word,\n\n  and 另一个 word; ",
            "f(x)\r\n/y z",
            "it's '\n'll",
            "!\n \n\u{301}b",
        ] {
            let text = unit.repeat(3 * MAX_ENCODED / unit.len());
            for (tokenizer, encoding) in [Tokenizer::O200k, Tokenizer::Cl100k].into_iter().zip(encodings()) {
                // F-006
                assert_eq!(tokenizer.count(&text), encoding.encode_ordinary(&text).len(), "{unit:?}");
            }
        }
        // The cut is before the space: the part ends with `ab`.
        assert_eq!(first_part_len(&"ab ".repeat(MAX_ENCODED)) % 3, 2);
    }

    /// Every text of four characters has the tokens of the two parts at each boundary.
    #[test]
    fn no_token_reaches_across_a_boundary() {
        let characters = ['s', 'S', '中', '1', '.', '/', '\'', '\u{301}', ' ', '\n', '\r', '\u{3000}'];
        let count = characters.len();
        for number in 0..count.pow(4) {
            let text = [0, 1, 2, 3].map(|at| characters[number / count.pow(at) % count]);
            for at in 1..text.len() {
                if !is_token_boundary(text[at - 1], text[at]) {
                    continue;
                }
                let [whole, before, after] =
                    [&text[..], &text[..at], &text[at..]].map(|part| part.iter().collect::<String>());
                for encoding in encodings() {
                    let mut tokens = encoding.encode_ordinary(&before);
                    tokens.extend(encoding.encode_ordinary(&after));
                    assert_eq!(tokens, encoding.encode_ordinary(&whole), "{before:?} {after:?}");
                }
            }
        }
    }

    /// Texts over which an encoder might backtrack, recurse or panic.
    #[test]
    fn hostile_texts_are_counted() {
        for unit in
            ["a", " ", "^", "\n", " \n", "  x", "中", "'s", "1", "\u{3000}", "\t \r\n", "a\u{301}", "!!!a"]
        {
            let text = unit.repeat(3 * MAX_ENCODED / unit.len());
            for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
                let count = tokenizer.count(&text);
                assert!(count > 0 && count <= text.len(), "{unit:?}: {count}");
            }
        }
    }
}
