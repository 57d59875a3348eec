//! JSON of a file, measured before a value is made of it.

use serde_json::Value;

use crate::error::{Error, Location, Result};

use super::File;

/// The value of `bytes`, without a byte order mark.
pub(super) fn parse(file: &File<'_>, bytes: &[u8]) -> Result<Value> {
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
    let (depth, values) = measure(text);
    if depth > file.limits.depth {
        return Err(
            file.refuse(&format!("JSON nested {depth} levels deep, at most {} are read", file.limits.depth))
        );
    }
    if values > file.limits.values {
        return Err(file.refuse(&format!("JSON of {values} values, at most {} are read", file.limits.values)));
    }
    serde_json::from_str(text).map_err(|cause| {
        let place = Location::of_line(text, cause.line(), cause.column());
        Error::malformed(format!("{}: not JSON: {cause}", file.name), Some(place))
    })
}

/// How deep the brackets of a text go, and how many values it has at most.
fn measure(text: &str) -> (usize, usize) {
    let (mut depth, mut deepest, mut values) = (0_usize, 0, 1);
    let (mut string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            _ if string => {}
            b'{' | b'[' => {
                depth += 1;
                values += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' | b':' => values += 1,
            _ => {}
        }
    }
    (deepest, values)
}
