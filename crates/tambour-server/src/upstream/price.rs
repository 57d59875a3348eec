//! Prices of models.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UpstreamSection;
use crate::base::origins::ConfigError;
use crate::base::token_counts::TokenCounts;

/// Prices per million tokens of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of prompt tokens.
    pub input: f64,
    /// Price of reply tokens, including reasoning.
    pub output: f64,
    /// Price of cached prompt tokens; the price of prompts when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
}

/// Highest price; keeps the cost of a day far from overflow.
const MAX_PRICE: f64 = 1e6;

impl Price {
    /// Returns the cost of a reply in millionths of the currency's unit, from token counts with OpenAI's
    /// names.
    pub(crate) fn cost(&self, usage: &Value) -> i64 {
        let TokenCounts { input, output } = TokenCounts::from_usage(usage);
        let cached_tokens = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0).min(input);
        #[expect(clippy::cast_precision_loss)]
        let part = |tokens: u64, price: f64| tokens as f64 * price;
        let cost = part(input - cached_tokens, self.input)
            + part(cached_tokens, self.cached_input.unwrap_or(self.input))
            + part(output, self.output);
        #[expect(clippy::cast_possible_truncation)]
        let cost = cost.round() as i64;
        cost
    }
}

impl UpstreamSection<'_> {
    /// Checks the prices.
    ///
    /// # Errors
    /// A price is negative, not finite or above a million.
    pub(crate) fn check_prices(&self) -> Result<(), ConfigError> {
        for (name, upstream) in self.upstreams {
            for (model, price) in &upstream.prices {
                let prices = [
                    ("input", Some(price.input)),
                    ("output", Some(price.output)),
                    ("cached_input", price.cached_input),
                ];
                for (part, value) in prices {
                    if value.is_some_and(|value| !(0.0..=MAX_PRICE).contains(&value)) {
                        let field = format!("upstreams.{name}.prices.{model}.{part}");
                        return Err(self
                            .origins
                            .field_error(&field, "takes the price of a million tokens, 0 to 1000000"));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Price;

    #[test]
    fn cached_tokens_have_a_price_of_their_own() {
        let usage = json!({
            "prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 400},
        });
        let price = Price { input: 0.25, output: 2.0, cached_input: Some(0.025) };
        assert_eq!(price.cost(&usage), 150 + 10 + 20);
        assert_eq!(Price { cached_input: None, ..price }.cost(&usage), 250 + 20);
        // Services should not report more cached tokens than prompt tokens.
        let odd = json!({"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 40}});
        assert_eq!(price.cost(&odd), 0);
    }
}
