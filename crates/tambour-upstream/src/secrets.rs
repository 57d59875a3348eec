//! Keys from environment variables and files. An error text is the end of a sentence about the variable or
//! file, such as "it is empty".

use std::path::Path;

/// Reads a key from an environment variable, and trims and validates it.
pub fn key_from_variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| "it is not set".to_owned()).and_then(|key| parse_key(&key))
}

/// Trims and validates a key: one word of printable ASCII.
pub fn parse_key(key: &str) -> Result<String, String> {
    match key.trim() {
        "" => Err("it is empty".to_owned()),
        key if key.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(key.to_owned()),
        _ => Err("it does not hold a valid key: a key is one word of ASCII".to_owned()),
    }
}

/// Reads the text of a key file; the caller passes it to `parse_key`.
pub fn read_key_file(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("it cannot be read: {error}"))
}
