//! `cargo xtask-tools web PROFILE FOLDER`: builds the WebAssembly modules of the package for JavaScript with a
//! profile of Cargo, and writes them with their JavaScript into a folder.
//!
//! The JavaScript is a script that leaves one function behind; a line at its end makes it a module of either kind,
//! so that both share one file of WebAssembly.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use wasm_bindgen_cli_support::Bindgen;

/// Target of the modules.
const TARGET: &str = "wasm32-unknown-unknown";

/// Modules: name, and the features of the crate.
const MODULES: [(&str, &[&str]); 2] = [("decoder", &[]), ("full", &["prompts"])];

pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let [profile, folder] = arguments else { anyhow::bail!("usage: xtask-tools web PROFILE FOLDER") };
    MODULES.iter().try_for_each(|(name, features)| build_module(name, features, profile, Path::new(folder)))
}

fn build_module(name: &str, features: &[&str], profile: &str, folder: &Path) -> anyhow::Result<()> {
    // A folder of its own: other steps build with other features, and would wait for its lock.
    let target = crate::repository_root().join("target/web");
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--package", "tambour-web", "--target", TARGET, "--profile", profile]);
    build.arg("--features").arg(features.join(",")).arg("--target-dir").arg(&target);
    // Features of packages that are not for the browser would come along.
    build.current_dir(crate::repository_root()).env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION");
    anyhow::ensure!(build.status().context("cargo")?.success(), "building the module `{name}` failed");
    let input = target.join(TARGET).join(profile).join("tambour_web.wasm");
    let mut bindgen = Bindgen::new();
    bindgen.input_path(input).no_modules(true)?.typescript(false).out_name(name);
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(folder)?;
    // The loaders say where the module lies.
    std::fs::rename(folder.join(format!("{name}_bg.wasm")), folder.join(format!("{name}.wasm")))?;
    let script = folder.join(format!("{name}.js"));
    let text = std::fs::read_to_string(&script)?;
    std::fs::write(folder.join(format!("{name}.cjs")), format!("{text}\nmodule.exports = wasm_bindgen;\n"))?;
    std::fs::write(folder.join(format!("{name}.mjs")), format!("{text}\nexport default wasm_bindgen;\n"))?;
    std::fs::remove_file(script)?;
    Ok(())
}
