//! Skeins of requests and aliases, as far as they say how a reply is read.

use serde_json::{Value, json};
use tambour::Options;
use tambour::protocol::ProtocolRegistry;
use tambour_prompt::skein::Skein;

use super::reading_defaults::Contract;

/// Reads a Skein of a request or a file.
///
/// # Errors
/// The value is not a valid Skein.
pub(crate) fn parse_skein(value: &Value) -> tambour::Result<Skein> {
    match value.as_str() {
        Some(text) => Skein::from_yaml("the prompt", text),
        None => Skein::from_value(value),
    }
}

/// Applies the structure of the Skein's protocols and the client's `views` to the options of the reply. The
/// contract takes precedence. An unreadable Skein changes nothing here.
///
/// # Errors
/// `views` are invalid.
pub(crate) fn apply_structure(
    skein: Option<&Value>,
    views: Option<&[String]>,
    contract: Option<&Contract>,
    options: &mut Options,
) -> tambour::Result<()> {
    let is_set = |name: &str| contract.is_some_and(|contract| contract.options.contains_key(name));
    if let Some(views) = views.filter(|_| !is_set("filament.views")) {
        options.set("filament.views", json!(views))?;
    }
    let Some(skein) = skein.filter(|_| !is_set("filament.structure") && !is_set("filament.protocols")) else {
        return Ok(());
    };
    if let Ok((Some(expected), _)) =
        parse_skein(skein).and_then(|skein| skein.expected_structure(&ProtocolRegistry::default()))
    {
        options.set("filament.structure", expected.to_json())?;
    }
    Ok(())
}
