//! Build of the studio with npm, when its sources changed, for embedding in the server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::Context;

/// Oldest version of Node, major and minor, that the build tools support.
const MIN_NODE_VERSION: (u32, u32) = (20, 19);

/// Inputs of a build, relative to the folder of the studio.
const BUILD_INPUTS: &[&str] = &[
    "src",
    "public",
    "scripts",
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
    "tsconfig.json",
    "../examples/abc-model/script.yaml",
    "../bindings/js/dist/esm",
    "../bindings/js/wasm",
];

/// Copy of the lock file from which the packages were installed.
const INSTALLED_LOCK: &str = "node_modules/.installed-lock.json";

pub(crate) fn studio_folder() -> PathBuf {
    crate::repository_root().join("studio")
}

/// Makes an npm command that runs in the folder of the studio.
pub(crate) fn npm_command(arguments: &[&str]) -> Command {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(studio_folder());
    command
}

/// Builds the studio if an input is newer than the last build. A failure is only printed: the server then
/// runs with the last build, or without the studio.
pub(crate) fn build_studio() {
    if is_current(&studio_folder()) {
        return;
    }
    let result = check_tools().and_then(|()| install_packages()).and_then(|()| {
        eprintln!("building the studio");
        run_command(&mut npm_command(&["run", "--silent", "build"]))
    });
    if let Err(error) = result {
        eprintln!("the studio was not built, the server runs without it or with an older one: {error:#}");
    }
}

/// Installs packages if the lock file changed.
pub(crate) fn install_packages() -> anyhow::Result<()> {
    let folder = studio_folder();
    let lock_file = std::fs::read(folder.join("package-lock.json"))?;
    if std::fs::read(folder.join(INSTALLED_LOCK)).is_ok_and(|installed| installed == lock_file) {
        return Ok(());
    }
    eprintln!("installing the packages of the studio");
    run_command(&mut npm_command(&[
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--prefer-offline",
    ]))?;
    std::fs::write(folder.join(INSTALLED_LOCK), lock_file)?;
    Ok(())
}

/// Fails if Node or npm is missing or too old.
fn check_tools() -> anyhow::Result<()> {
    let output = Command::new("node").arg("--version").output().context("Node is not installed")?;
    let version_text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let version =
        parse_version(&version_text).with_context(|| format!("`node --version` says {version_text}"))?;
    anyhow::ensure!(
        version >= MIN_NODE_VERSION,
        "Node {version_text} is too old, {}.{} or newer is needed",
        MIN_NODE_VERSION.0,
        MIN_NODE_VERSION.1
    );
    anyhow::ensure!(crate::need::is_installed("npm"), "npm is not installed");
    Ok(())
}

/// Parses the major and minor number of `v20.19.1`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Runs a command.
///
/// # Errors
/// The command cannot be started, or fails.
fn run_command(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    anyhow::ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Returns `true` if the build is newer than all its inputs.
fn is_current(folder: &Path) -> bool {
    let modified_at = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let Some(built_at) = modified_at(&folder.join("dist/index.html")) else { return false };
    let mut changes = BUILD_INPUTS.iter().filter_map(|name| latest_change(&folder.join(name)));
    changes.all(|changed_at| changed_at <= built_at)
}

/// Time of the latest change of a file, or of a folder and all below it; `None` if it does not exist. A
/// folder changes when a file is added or removed.
fn latest_change(path: &Path) -> Option<SystemTime> {
    let own_time = path.metadata().and_then(|metadata| metadata.modified()).ok()?;
    let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| latest_change(&entry.path())).chain([own_time]).max()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{MIN_NODE_VERSION, is_current, parse_version};

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(parse_version("v20.19.1"), Some((20, 19)));
        assert!(
            parse_version("v22.3.0") > Some(MIN_NODE_VERSION)
                && parse_version("v20.9.0") < Some(MIN_NODE_VERSION)
        );
        assert_eq!(parse_version("20"), None);
    }

    #[test]
    fn a_build_is_current_until_a_source_changes() {
        let folder = std::env::temp_dir().join(format!("xtask-studio-{}", std::process::id()));
        let source = folder.join("src/app/App.tsx");
        std::fs::create_dir_all(folder.join("src/app")).expect("a folder");
        std::fs::create_dir_all(folder.join("dist")).expect("a folder");
        std::fs::write(&source, "").expect("a file");
        assert!(!is_current(&folder), "nothing is built");
        let built = std::fs::File::create(folder.join("dist/index.html")).expect("a file");
        built.set_modified(SystemTime::now() + Duration::from_secs(10)).expect("a time");
        assert!(is_current(&folder));
        let changed = std::fs::File::options().write(true).open(&source).expect("a file");
        changed.set_modified(SystemTime::now() + Duration::from_secs(20)).expect("a time");
        assert!(!is_current(&folder));
        std::fs::remove_dir_all(&folder).expect("it is ours");
    }
}
