//! YAML as prompts, lorebooks, scripts and structure files use it (F-004): read into JSON values or typed ones, and written in
//! one form.
//!
//! Reading is YAML 1.2: only `true` and `false` are booleans (`no`, `on` and `yes` are text), a number with a leading zero or
//! an underscore is text, a key stands once in a mapping, and `<<` is a key like any other. What a text may cost is bounded by
//! [`YamlLimits`].
//!
//! ```
//! use serde_json::json;
//! use tambour::yaml;
//!
//! let value = yaml::parse("the note", "name: Dark Forest\nsafe: no\ncode: 007\n")?;
//! assert_eq!(value, json!({"name": "Dark Forest", "safe": "no", "code": "007"}));
//! assert_eq!(yaml::print(&json!({"loot": ["Ancient Bark"]})), "loot:\n  - Ancient Bark\n");
//! # Ok::<(), tambour::Error>(())
//! ```

mod read;
mod write;

#[doc(hidden)]
pub use read::place;
pub use read::{YamlLimits, parse, parse_with, read};
pub use write::{indented, print};
