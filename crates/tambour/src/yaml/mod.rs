//! YAML for prompts, lorebooks, scripts and structure files (F-004): read into JSON values or typed values,
//! and written in a single style.
//!
//! The reader follows YAML 1.2: only `true` and `false` are booleans (`no`, `on` and `yes` are text), a
//! number with a leading zero or an underscore is text, keys of a mapping are unique, and `<<` is an ordinary
//! key. [`YamlLimits`] bounds the cost.
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
pub use read::locate;
pub use read::{YamlLimits, parse, parse_as, parse_with};
pub use write::{indent_lines, print};
