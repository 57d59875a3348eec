//! npm packages: `@tambour/core`, and the one with the addon of this platform, which it names as optional.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

use super::{Release, read_tree};
use crate::{build_debug, renew_folder, repository_root, run_command};

/// Platforms of a release: that of Rust, and of Node the operating system, the processor and the C library.
const PLATFORMS: &[(&str, &str, &str, &str)] = &[
    ("x86_64-unknown-linux-gnu", "linux", "x64", "glibc"),
    ("aarch64-unknown-linux-gnu", "linux", "arm64", "glibc"),
];

/// Makes both packages. The addon and the modules are built with small profiles, or for a check with quick ones.
pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    let bindings = repository_root().join("bindings/js");
    let out = release.out.join("npm");
    std::fs::create_dir_all(&out)?;
    let core = release.work.join("npm-core");
    renew_folder(&core)?;
    build_typescript(&bindings)?;
    for folder in ["dist/esm", "dist/cjs", "loaders"] {
        copy_folder(&bindings.join(folder), &core.join(folder))?;
    }
    build_modules(release, &core.join("wasm"))?;
    add_texts(&core)?;
    std::fs::write(core.join("package.json"), describe_core(&bindings, &release.version)?)?;
    pack(&core, &out)?;
    let platform = PLATFORMS.iter().find(|(rust, ..)| *rust == release.target);
    let (_, system, processor, library) =
        platform.with_context(|| format!("no npm package is made for {}", release.target))?;
    let addon = release.work.join("npm-addon");
    renew_folder(&addon)?;
    build_addon(release, &addon.join("tambour.node"))?;
    add_texts(&addon)?;
    let package = json!({
        "name": addon_name(system, processor),
        "version": release.version,
        "description": "Addon of @tambour/core for one platform",
        "license": "MIT OR Apache-2.0",
        "main": "tambour.node",
        "files": ["tambour.node"],
        "os": [system],
        "cpu": [processor],
        "libc": [library],
    });
    std::fs::write(addon.join("package.json"), format!("{package:#}\n"))?;
    pack(&addon, &out)
}

/// Package of the main package with what it needs to run, and the addons of all platforms as optional packages.
fn describe_core(bindings: &Path, version: &str) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(bindings.join("package.json"))?;
    let mut package: Value = serde_json::from_str(&text)?;
    anyhow::ensure!(
        package["version"] == version,
        "bindings/js/package.json has the version of the workspace"
    );
    let addons = PLATFORMS.iter();
    let addons = addons.map(|(_, system, processor, _)| (addon_name(system, processor), version.into()));
    package["optionalDependencies"] = Value::Object(addons.collect());
    for field in ["scripts", "devDependencies"] {
        package.as_object_mut().context("a package is an object")?.remove(field);
    }
    Ok(format!("{package:#}\n"))
}

/// Name of the package with the addon of a platform, as `loaders/node.cjs` looks for it.
fn addon_name(system: &str, processor: &str) -> String {
    format!("@tambour/core-{system}-{processor}-gnu")
}

/// Copies the files of a folder but for an addon that was built for the tests.
fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for name in read_tree(from)?.into_iter().filter(|name| name.extension().is_none_or(|end| end != "node")) {
        std::fs::copy(from.join(&name), to.join(&name)).with_context(|| name.display().to_string())?;
    }
    Ok(())
}

fn build_typescript(bindings: &Path) -> anyhow::Result<()> {
    let npm = |words: &[&str]| run_command(Command::new("npm").args(words).current_dir(bindings));
    if !bindings.join("node_modules/typescript").is_dir() {
        npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"])?;
    }
    npm(&["run", "--silent", "build"])
}

/// Builds the WebAssembly modules.
fn build_modules(release: &Release, folder: &Path) -> anyhow::Result<()> {
    let tools = std::env::current_exe()?.with_file_name("xtask-tools");
    let profile = if release.is_check { "web-test" } else { "web" };
    run_command(Command::new(tools).args(["web", profile]).arg(folder))
}

fn build_addon(release: &Release, path: &Path) -> anyhow::Result<()> {
    let name = format!("{}tambour_node{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let folder: PathBuf = if release.is_check {
        build_debug(&["--lib"])?
    } else {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "--package", "tambour-node", "--profile", "wheel"]);
        run_command(build.current_dir(repository_root()))?;
        repository_root().join("target/wheel")
    };
    let built = folder.join(name);
    if cfg!(unix) {
        return run_command(Command::new("strip").arg("-x").arg("-o").arg(path).arg(&built));
    }
    std::fs::copy(&built, path).with_context(|| built.display().to_string())?;
    Ok(())
}

/// Adds the README of the package and its licences.
fn add_texts(folder: &Path) -> anyhow::Result<()> {
    let root = repository_root();
    std::fs::copy(root.join("bindings/js/README.md"), folder.join("README.md"))?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        std::fs::copy(root.join(name), folder.join(name))?;
    }
    Ok(())
}

fn pack(folder: &Path, out: &Path) -> anyhow::Result<()> {
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", "--pack-destination"]).arg(out).current_dir(folder);
    run_command(pack.stdout(Stdio::null()))
}
