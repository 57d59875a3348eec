//! Skeins (prompts made of blocks) of requests and aliases: parsing, and the structure of the reply that a
//! Skein requires.

use serde_json::{Value, json};
use tambour::Options;
use tambour::protocol::ProtocolRegistry;
use tambour_prompt::skein::Skein;

use super::reading_defaults::Contract;

/// Reads a Skein of a request or a file: YAML if `value` is a string, otherwise an object.
///
/// # Errors
/// The value is not a valid Skein.
pub(crate) fn parse_skein(value: &Value) -> tambour::Result<Skein> {
    match value.as_str() {
        Some(text) => Skein::from_yaml("the prompt", text),
        None => Skein::from_value(value),
    }
}

/// Sets the option `filament.structure` as the Skein's protocols require, and `filament.views` as the client
/// wants. Options that the contract sets are kept, and `filament.protocols` of the contract also keeps
/// `filament.structure`. An invalid Skein is ignored.
///
/// # Errors
/// `views` are invalid.
pub(crate) fn apply_structure(
    skein: Option<&Value>,
    views: Option<&[String]>,
    contract: Option<&Contract>,
    options: &mut Options,
) -> tambour::Result<()> {
    let contract_sets = |name: &str| contract.is_some_and(|contract| contract.options.contains_key(name));
    if let Some(views) = views.filter(|_| !contract_sets("filament.views")) {
        options.set("filament.views", json!(views))?;
    }
    let Some(skein) =
        skein.filter(|_| !contract_sets("filament.structure") && !contract_sets("filament.protocols"))
    else {
        return Ok(());
    };
    if let Ok((Some(expected), _)) =
        parse_skein(skein).and_then(|skein| skein.expected_structure(&ProtocolRegistry::default()))
    {
        options.set("filament.structure", expected.to_json())?;
    }
    Ok(())
}
