//! `cargo xtask bindings`: writes the types of the packages for other languages from the definitions in Rust;
//! with `--check` fails where they differ. `golden FILE` writes replies with the events and findings that the
//! library gives, for the tests of the packages.

mod golden;
mod python;
mod typescript;

use std::path::Path;

use anyhow::Context;
use tambour::options::{Setting, SettingValues};
use tambour_bindings::types::type_definitions;

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => generate(false),
        ["--check"] => generate(true),
        ["golden", file] => golden::write(Path::new(file)),
        _ => anyhow::bail!("usage: cargo xtask bindings [--check | golden FILE]"),
    }
}

/// Writes the generated files, or compares them.
fn generate(is_check: bool) -> anyhow::Result<()> {
    let definitions = type_definitions();
    let folder = crate::repository_root().join("bindings");
    let (python, javascript) = (folder.join("python/python/tambour"), folder.join("js/src"));
    let files = [
        (python.join("_types.py"), python::write_types(&definitions)),
        (python.join("_options.py"), python::write_options()),
        (javascript.join("types.ts"), typescript::write_types(&definitions)),
        (javascript.join("options.ts"), typescript::write_options()),
    ];
    for (path, text) in files {
        if !is_check {
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        } else if std::fs::read_to_string(&path).unwrap_or_default() != text {
            anyhow::bail!("{} differs from the definitions; run `cargo xtask bindings`", path.display());
        }
    }
    Ok(())
}

/// Describes an option with its unit and its default.
fn describe_option(setting: &Setting) -> String {
    let mut about = setting.description.to_owned();
    if let SettingValues::Number(unit, _) = setting.accepts {
        about += &format!("; in {unit}");
    }
    if !setting.default.is_empty() {
        about += &format!("; default {}", setting.default);
    }
    about
}
