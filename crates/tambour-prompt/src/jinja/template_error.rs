//! Errors of templates (F-025), converted from those of minijinja.

use std::borrow::Cow;

use super::{CompiledTemplate, functions};
use tambour::error::{Error, Location};
use tambour::finding::clip;

/// Converts an engine error and maps its position back to the template (F-025).
pub(super) fn template_error(
    name: &str,
    compiled_template: &CompiledTemplate,
    error: &minijinja::Error,
) -> Error {
    use minijinja::ErrorKind;
    // The summary is empty where minijinja's detail, or the name of the kind, says enough.
    let (code, summary) = match error.kind() {
        ErrorKind::SyntaxError => ("template_syntax", "syntax error"),
        ErrorKind::UndefinedError if error.detail().is_some() => ("variable_undefined", ""),
        ErrorKind::UndefinedError => ("variable_undefined", "undefined value"),
        ErrorKind::OutOfFuel if error.detail().is_some() => ("limit_exceeded", ""),
        ErrorKind::OutOfFuel => ("limit_exceeded", "the template takes too many steps"),
        ErrorKind::UnknownFilter => ("template_invalid", "unknown filter"),
        ErrorKind::UnknownTest => ("template_invalid", "unknown test"),
        ErrorKind::UnknownFunction => ("template_invalid", "unknown function"),
        _ => ("template_invalid", ""),
    };
    let is_recursion_limit = error.detail().is_some_and(|detail| detail.contains("recursion"));
    let code = if is_recursion_limit { "limit_exceeded" } else { code };
    let detail = error.detail().unwrap_or_default();
    let message = match (summary, detail) {
        ("", "") => error.kind().to_string(),
        ("", detail) => detail.to_owned(),
        (summary, "") => summary.to_owned(),
        (summary, detail) => format!("{summary}: {detail}"),
    };
    let rewritten_source = &compiled_template.rewritten_source;
    let offset = match error.range() {
        Some(range) => rewritten_source.source_offset(range.start.min(rewritten_source.text.len())),
        None => {
            let line = error.line().unwrap_or(1).saturating_sub(1);
            rewritten_source
                .source_offset(rewritten_source.text.split_inclusive('\n').take(line).map(str::len).sum())
        }
    };
    let message = strip_internal_names(&message);
    let location = Location::from_offset(&compiled_template.source, offset);
    with_template_name(name, Error::malformed(message, Some(location)).with_code(code))
}

/// Removes names that exist only in the rewritten source from an engine message.
fn strip_internal_names(message: &str) -> Cow<'_, str> {
    match message.contains("__") {
        true => Cow::Owned(
            message
                .replace("__out", "{{ }}")
                .replace("__flat_row", "set")
                .replace("__flat", "set")
                .replace(functions::FUNCTION_PREFIX, ""),
        ),
        false => Cow::Borrowed(message),
    }
}

/// Returns the error with template name, line, column and the quoted line in its message; unchanged if it has
/// no location.
pub(super) fn with_template_name(name: &str, error: Error) -> Error {
    let Some(location) = error.location().cloned() else { return error };
    let message = format!(
        "template `{}`, line {}, column {}: {error}: {}",
        clip(name, 60),
        location.line,
        location.column,
        location.excerpt.trim()
    );
    let code = error.code().unwrap_or("template_invalid");
    Error::malformed(message, Some(location)).with_code(code)
}
