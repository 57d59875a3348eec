//! Counting of tokens, for the server and the commands.

use serde::{Deserialize, Serialize};
use tambour_prompt::tokens;

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

    /// Counts the tokens of a text.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match self {
            Tokenizer::O200k => bpe_openai::o200k_base().count(text),
            Tokenizer::Cl100k => bpe_openai::cl100k_base().count(text),
            Tokenizer::Estimate => tokens::estimate_tokens(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tokenizer;

    #[test]
    fn requests_and_options_have_the_same_names() {
        assert_eq!(Tokenizer::ALL[0], Tokenizer::default());
        for tokenizer in Tokenizer::ALL {
            assert_eq!(serde_json::json!(tokenizer), tokenizer.name());
        }
    }
}
