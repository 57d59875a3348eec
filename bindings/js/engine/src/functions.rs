//! Functions on whole texts.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tambour::Profile;
use tambour::error::{Error, Result};
use tambour_bindings::input_end::parse_end;
use tambour_bindings::json::{FoundJson, find_json, find_json_value};
use tambour_bindings::options::build_options;
use tambour_bindings::replies::{self, ContractForm};

use crate::answer::{Answer, guard, read_arguments, read_text, write};

/// Names of the functions.
const FUNCTIONS: &[&str] = &[
    "check",
    "repair",
    "find_json",
    "sanitize",
    "contract",
    #[cfg(feature = "prompts")]
    "import_card",
    #[cfg(feature = "prompts")]
    "migrate_macros",
];

/// Options of the library by name.
type OptionValues = Map<String, Value>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckArguments {
    contract: String,
    options: OptionValues,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepairArguments {
    dialect: String,
    finish: Option<String>,
    options: OptionValues,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FindArguments {
    strict: bool,
    findings: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SanitizeArguments {
    mode: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContractArguments {
    name: String,
    format: String,
    options: OptionValues,
}

/// Calls the function called `name` on the text or file `input`.
///
/// # Errors
/// The function, an argument or the input is at fault; the error says how.
pub fn call(name: &str, arguments: &str, input: &[u8]) -> Answer {
    guard(|| match name {
        "check" => check(&read_arguments(arguments)?, input),
        "repair" => repair(&read_arguments(arguments)?, input),
        "find_json" => find(&read_arguments(arguments)?, input),
        "sanitize" => sanitize(&read_arguments(arguments)?, input),
        "contract" => contract(&read_arguments(arguments)?),
        #[cfg(feature = "prompts")]
        "import_card" => crate::prompts::import_card(&read_arguments(arguments)?, input),
        #[cfg(feature = "prompts")]
        "migrate_macros" => write(&tambour_bindings::prompts::migrate_macros(&read_text(input))),
        _ => Err(Error::unknown("function", name, FUNCTIONS.iter().copied())),
    })
}

fn check(arguments: &CheckArguments, input: &[u8]) -> Result<String> {
    let options = build_options(&arguments.options, Profile::Strict)?;
    write(&replies::check(&arguments.contract, input, &options)?)
}

fn repair(arguments: &RepairArguments, input: &[u8]) -> Result<String> {
    let options = build_options(&arguments.options, Profile::Lenient)?;
    let end = parse_end(arguments.finish.as_deref(), false)?;
    write(&replies::repair(&arguments.dialect, input, &options, &end)?)
}

/// Writes an object with the `value`, absent if there is none, and the `findings`, absent if there is a value and
/// nobody wants them.
fn find(arguments: &FindArguments, input: &[u8]) -> Result<String> {
    let text = read_text(input);
    let quick = (!arguments.strict && !arguments.findings).then(|| find_json_value(&text)).flatten();
    let (found, findings) = match quick {
        Some(value) => (Some(value), None),
        None => {
            let (found, findings) = find_json(&text, arguments.strict);
            let wanted = arguments.findings || found.is_none();
            (found, wanted.then_some(findings))
        }
    };
    let mut fields = Vec::new();
    match found {
        Some(FoundJson::Value(value)) => fields.push(format!("\"value\":{value}")),
        Some(FoundJson::Text(text)) => fields.push(format!("\"value\":{text}")),
        None => {}
    }
    if let Some(findings) = findings {
        fields.push(format!("\"findings\":{}", write(&findings)?));
    }
    Ok(format!("{{{}}}", fields.join(",")))
}

fn sanitize(arguments: &SanitizeArguments, input: &[u8]) -> Result<String> {
    let (text, findings) = replies::sanitize_html(&read_text(input), &arguments.mode)?;
    write(&json!({ "text": text, "findings": findings }))
}

fn contract(arguments: &ContractArguments) -> Result<String> {
    let options = build_options(&arguments.options, Profile::default())?;
    match replies::contract(&arguments.name, &arguments.format, &options)? {
        ContractForm::Text(text) => write(&text),
        ContractForm::Json(value) => write(&value),
    }
}
