//! Parses JSON after measuring it against the limits.

use std::borrow::Cow;

use serde_json::Value;

use tambour::error::{Error, Location, Result, json_error_message};
use tambour::lex::weight::{JsonWeight, weigh};

use super::ImportFile;

/// Parses `bytes`, with or without a byte order mark. Returns the value and the memory it takes, in bytes.
pub(super) fn parse_measured(file: &ImportFile<'_>, bytes: &[u8]) -> Result<(Value, usize)> {
    if bytes.len() > file.limits.text {
        return Err(file.refuse(&format!(
            "{} bytes of JSON, at most {} are read",
            bytes.len(),
            file.limits.text
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        file.refuse(&format!(
            "not UTF-8 text at byte {}; neither a picture, an archive nor JSON",
            error.valid_up_to()
        ))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (text, surrogate_count) = replace_lone_surrogates(text);
    if surrogate_count > 0 {
        file.warn(format!("{surrogate_count} unpaired surrogates (`\\ud83d` and the like) were replaced"));
    }
    let text = &*text;
    let JsonWeight { depth, values, bytes: memory, .. } = weigh(text.as_bytes());
    if depth > file.limits.depth {
        return Err(
            file.refuse(&format!("JSON nested {depth} levels deep, at most {} are read", file.limits.depth))
        );
    }
    if values > file.limits.values {
        return Err(file.refuse(&format!("JSON of {values} values, at most {} are read", file.limits.values)));
    }
    if memory > file.limits.memory {
        let limit = file.limits.memory;
        return Err(file.refuse(&format!(
            "the JSON has {values} values, which take {memory} bytes of memory; the files of a request may take {limit} together: leave some \
             out, or send the files one by one"
        )));
    }
    let value = serde_json::from_str(text).map_err(|cause| {
        let place = Location::from_json_error(text, &cause);
        Error::malformed(format!("{}: not JSON: {}", file.name, json_error_message(&cause)), Some(place))
    })?;
    Ok((value, memory))
}

/// Replaces `\u` escapes of lone surrogates by the replacement character; returns the text and the number of
/// replacements.
fn replace_lone_surrogates(text: &str) -> (Cow<'_, str>, usize) {
    let bytes = text.as_bytes();
    // Returns the UTF-16 unit of the escape at a byte offset; `from_str_radix` alone would accept a sign.
    let escaped_unit = |at: usize| {
        let escape = bytes.get(at..at + 6).filter(|escape| escape.starts_with(b"\\u"))?;
        let digits = std::str::from_utf8(&escape[2..]).ok().filter(|digits| !digits.starts_with('+'))?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut surrogate_count, mut copied_end) = (String::new(), 0, 0);
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'\\', &bytes[at..]) {
        let start = at + offset;
        at = match (escaped_unit(start), escaped_unit(start + 6)) {
            // A pair encodes one character and stays.
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => start + 12,
            (Some(0xd800..0xe000), _) => {
                out.push_str(&text[copied_end..start]);
                out.push_str("\\ufffd");
                surrogate_count += 1;
                copied_end = start + 6;
                start + 6
            }
            // Skips the character after the backslash, which may be another backslash.
            _ => (start + 2).min(bytes.len()),
        };
    }
    if surrogate_count == 0 {
        return (text.into(), 0);
    }
    (format!("{out}{}", &text[copied_end..]).into(), surrogate_count)
}
