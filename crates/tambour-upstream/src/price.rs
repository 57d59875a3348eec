//! Prices of models.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::UpstreamSection;
use crate::origins::ConfigError;
use crate::token_counts::TokenCounts;

/// Prices of a model per million tokens, in any currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Price of prompt tokens.
    pub input: f64,
    /// Price of reply tokens, including reasoning.
    pub output: f64,
    /// Price of prompt tokens that the service had cached; `input` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
}

/// Highest price that is accepted; keeps sums of costs far from overflow.
const MAX_PRICE: f64 = 1e6;

impl Price {
    /// Returns the cost of a reply in millionths of the currency's unit. `usage` has token counts in the form
    /// of OpenAI's chat completions interface.
    pub fn cost(&self, usage: &Value) -> i64 {
        let TokenCounts { input, output } = TokenCounts::from_usage(usage);
        let cached_tokens = usage["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap_or(0).min(input);
        #[expect(clippy::cast_precision_loss)]
        // A price per million tokens, in units, equals the price of one token in millionths of a unit.
        let cost_of = |tokens: u64, price: f64| tokens as f64 * price;
        let cost = cost_of(input - cached_tokens, self.input)
            + cost_of(cached_tokens, self.cached_input.unwrap_or(self.input))
            + cost_of(output, self.output);
        #[expect(clippy::cast_possible_truncation)]
        let cost = cost.round() as i64;
        cost
    }
}

impl UpstreamSection<'_> {
    /// Checks the prices of all upstreams.
    ///
    /// # Errors
    /// A price is negative, not finite or above a million.
    pub fn check_prices(&self) -> Result<(), ConfigError> {
        for (name, upstream) in self.upstreams {
            for (model, price) in &upstream.prices {
                let prices = [
                    ("input", Some(price.input)),
                    ("output", Some(price.output)),
                    ("cached_input", price.cached_input),
                ];
                for (price_field, value) in prices {
                    if value.is_some_and(|value| !(0.0..=MAX_PRICE).contains(&value)) {
                        let field = format!("upstreams.{name}.prices.{model}.{price_field}");
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
    fn cached_tokens_have_their_own_price() {
        let usage = json!({
            "prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 400},
        });
        let price = Price { input: 0.25, output: 2.0, cached_input: Some(0.025) };
        assert_eq!(price.cost(&usage), 150 + 10 + 20);
        assert_eq!(Price { cached_input: None, ..price }.cost(&usage), 250 + 20);
        // Services should not report more cached tokens than prompt tokens.
        let faulty_usage = json!({"prompt_tokens": 4, "prompt_tokens_details": {"cached_tokens": 40}});
        assert_eq!(price.cost(&faulty_usage), 0);
    }
}
