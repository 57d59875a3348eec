//! npm packages in an empty folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Outcome;
use crate::dist::{Release, read_tree};
use crate::first_page::FirstPage;
use crate::{find_program, read_command, renew_folder, run_command};

/// Program that says which engine a package has loaded, and whether all its entries load in both kinds of modules.
const ENTRIES: &str = "\
    const { createRequire } = await import('node:module');\n\
    const require = createRequire(process.cwd() + '/');\n\
    for (const entry of ['', '/prompts', '/openai', '/ai-sdk']) {\n\
      const [module, common] = [await import('@tambour/core' + entry), require('@tambour/core' + entry)];\n\
      const names = Object.keys(module).filter((name) => name !== 'default' && name !== 'module.exports');\n\
      for (const name of names) if (!(name in common)) throw new Error(entry + ': ' + name);\n\
    }\n\
    const { loads, version } = require('@tambour/core');\n\
    if (loads('{a: 1,}').a !== 1) throw new Error('loads');\n\
    console.log(version);\n";

/// Largest size of the smaller WebAssembly module after gzip, in bytes.
const DECODER_LIMIT: usize = 1_500_000;

/// Installs the packages into an empty folder and runs the program of the first page: with the addon, without it, and
/// with the conditions of Deno.
pub(super) fn check(release: &Release) -> anyhow::Result<Outcome> {
    anyhow::ensure!(find_program("node").is_some(), "node is not installed");
    let folder = release.work.join("check-npm");
    let addon = install(release, &folder, &read_tree(&release.out.join("npm"))?)?;
    let addon = addon.join("tambour.node");
    anyhow::ensure!(addon.is_file(), "{} is not there", addon.display());
    run_programs(release, &folder, &[])?;
    run_programs(release, &folder, &["--conditions=deno"])?;
    // Without the package of the platform the modules do the work.
    std::fs::remove_file(&addon)?;
    run_programs(release, &folder, &[])?;
    let module = std::fs::read(folder.join("node_modules/@tambour/core/wasm/decoder.wasm"))?;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &module)?;
    let size = gzip.finish()?.len();
    let limit = if release.is_check { usize::MAX } else { DECODER_LIMIT };
    anyhow::ensure!(
        size <= limit,
        "the module decoder.wasm takes {size} bytes after gzip, more than {limit}"
    );
    Ok(Outcome::Success(format!("decoder.wasm takes {} kB after gzip", size / 1000)))
}

/// Installs packages into an empty folder, without a registry. Returns the folder of the addon.
fn install(release: &Release, folder: &Path, packages: &[PathBuf]) -> anyhow::Result<PathBuf> {
    renew_folder(folder)?;
    std::fs::write(folder.join("package.json"), r#"{"private": true}"#)?;
    let mut npm = Command::new("npm");
    // Optional packages of other platforms are in no folder.
    npm.args(["install", "--silent", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]);
    for package in packages {
        npm.arg(release.out.join("npm").join(package));
    }
    run_command(npm.current_dir(folder))?;
    let mut installed = std::fs::read_dir(folder.join("node_modules/@tambour"))?;
    let addon = installed.find_map(|entry| {
        let path = entry.ok()?.path();
        path.file_name().is_some_and(|name| name != "core").then_some(path)
    });
    anyhow::ensure!(addon.is_some(), "the package of this platform is not installed");
    Ok(addon.unwrap_or_default())
}

/// Runs the program of the first page as printed, and loads all entries.
fn run_programs(release: &Release, folder: &Path, node_options: &[&str]) -> anyhow::Result<()> {
    let page = FirstPage::read()?;
    // The program has no types of its own, so that it is JavaScript too.
    std::fs::write(folder.join("first.mjs"), page.program("ts")?)?;
    std::fs::write(folder.join("entries.mjs"), ENTRIES)?;
    let run = |name: &str| {
        let mut node = Command::new("node");
        read_command(node.args(node_options).arg(name).current_dir(folder))
    };
    page.compare("TypeScript", &run("first.mjs")?)?;
    let version = run("entries.mjs")?;
    anyhow::ensure!(version.trim() == release.version, "the package has version {version}");
    Ok(())
}
