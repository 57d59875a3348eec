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
    /// All methods, the default first.
    pub const ALL: [Tokenizer; 3] = [Tokenizer::O200k, Tokenizer::Cl100k, Tokenizer::Estimate];

    /// Returns its name in requests and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::O200k => "o200k",
            Tokenizer::Cl100k => "cl100k",
            Tokenizer::Estimate => "estimate",
        }
    }

    /// Returns the method with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Tokenizer> {
        Tokenizer::ALL.into_iter().find(|tokenizer| tokenizer.name() == name)
    }

    /// Returns its description for users.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Tokenizer::O200k => "Encoding of newer OpenAI models",
            Tokenizer::Cl100k => "Encoding of GPT-4",
            Tokenizer::Estimate => "Quarter of a token for an ASCII character, one token for any other",
        }
    }

    /// Counts the tokens of a text. Exact, except that a run of 64 KiB without a space after another character
    /// may count as one token more.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self {
            Tokenizer::O200k => count_encoded(tiktoken_rs::o200k_base_singleton(), text),
            Tokenizer::Cl100k => count_encoded(tiktoken_rs::cl100k_base_singleton(), text),
            Tokenizer::Estimate => tokens::estimate_tokens(text),
        }
    }
}

/// Most bytes that are encoded at once: the encoder backtracks over runs of white space, and panics where one
/// is longer than its stack.
const MAX_ENCODED: usize = 64 << 10;

fn count_encoded(encoding: &CoreBPE, mut text: &str) -> usize {
    let mut count = 0;
    while !text.is_empty() {
        let (first, rest) = text.split_at(encoded_len(text));
        count += encoding.encode_ordinary(first).len();
        text = rest;
    }
    count
}

/// Length of the first part of a text that can be encoded by itself. No token reaches from another character
/// into white space, so that a cut between the two changes no token.
fn encoded_len(text: &str) -> usize {
    if text.len() <= MAX_ENCODED {
        return text.len();
    }
    let longest = text.floor_char_boundary(MAX_ENCODED);
    let mut next_is_space = false;
    for (at, c) in text[..longest].char_indices().rev() {
        if next_is_space && !c.is_whitespace() {
            return at + c.len_utf8();
        }
        next_is_space = c.is_whitespace();
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::{MAX_ENCODED, Tokenizer, encoded_len};

    #[test]
    fn requests_and_options_have_the_same_names() {
        assert_eq!(Tokenizer::ALL[0], Tokenizer::default());
        for tokenizer in Tokenizer::ALL {
            assert_eq!(serde_json::json!(tokenizer), tokenizer.name());
        }
    }

    /// Numbers of OpenAI's own encoder (F-006).
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
        let per_unit = tokenizer.count(&unit.repeat(3)) - tokenizer.count(&unit.repeat(2));
        let (few, many) = (10, 3 * MAX_ENCODED / unit.len());
        let expected_count = tokenizer.count(&unit.repeat(few)) + (many - few) * per_unit;
        assert_eq!(tokenizer.count(&unit.repeat(many)), expected_count);
        assert_eq!(encoded_len(&"ab ".repeat(MAX_ENCODED)) % 3, 2);
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
