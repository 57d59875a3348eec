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

    /// Counts the tokens of a text. Up to 64 KiB an encoding counts exactly; a longer text is counted in
    /// parts, and a token across two parts may count as more than one.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self {
            Tokenizer::O200k => count_encoded(tiktoken_rs::o200k_base_singleton(), text),
            Tokenizer::Cl100k => count_encoded(tiktoken_rs::cl100k_base_singleton(), text),
            Tokenizer::Estimate => tokens::estimate_tokens(text),
        }
    }
}

/// Most bytes that are encoded at once: the encoder backtracks over runs of white space, and panics on a run
/// that is too long for its stack.
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

/// Returns the length in bytes of the first part to encode: up to the last white space that follows another
/// character, within `MAX_ENCODED`. Few tokens reach across such a place (punctuation with a line break).
/// Without one, the part is as long as allowed.
fn first_part_len(text: &str) -> usize {
    if text.len() <= MAX_ENCODED {
        return text.len();
    }
    let max_len = text.floor_char_boundary(MAX_ENCODED);
    let mut is_before_space = false;
    for (offset, c) in text[..max_len].char_indices().rev() {
        if is_before_space && !c.is_whitespace() {
            return offset + c.len_utf8();
        }
        is_before_space = c.is_whitespace();
    }
    max_len
}

#[cfg(test)]
mod tests {
    use super::{MAX_ENCODED, Tokenizer, first_part_len};

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
    fn a_long_text_has_the_tokens_of_its_parts() {
        let (unit, tokenizer) = ("One word,\n\n  and 另一个 word; ", Tokenizer::O200k);
        let tokens_per_unit = tokenizer.count(&unit.repeat(3)) - tokenizer.count(&unit.repeat(2));
        let (few, many) = (10, 3 * MAX_ENCODED / unit.len());
        let expected_count = tokenizer.count(&unit.repeat(few)) + (many - few) * tokens_per_unit;
        assert_eq!(tokenizer.count(&unit.repeat(many)), expected_count);
        // The cut is before the space: the part ends with `ab`.
        assert_eq!(first_part_len(&"ab ".repeat(MAX_ENCODED)) % 3, 2);
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
