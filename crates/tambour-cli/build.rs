//! Build information for `tambour --version`: commit, date, target and features.
//!
//! The commit is `TAMBOUR_COMMIT`, or that of the checkout in an optimized build; a debug build would be linked
//! again at each commit. The date is `SOURCE_DATE_EPOCH`, or the time of the commit, so that the same sources
//! give the same program.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=TAMBOUR_COMMIT");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    println!("cargo::rerun-if-changed=build.rs");
    let is_optimized = variable("OPT_LEVEL").is_some_and(|level| level != "0");
    let checkout = is_optimized.then(read_checkout).flatten();
    let (commit, time) = checkout.unzip();
    let commit = variable("TAMBOUR_COMMIT").or(commit).unwrap_or_else(|| "unknown".to_owned());
    let seconds = variable("SOURCE_DATE_EPOCH").or(time).and_then(|seconds| seconds.parse().ok());
    let date = seconds
        .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok())
        .map_or_else(|| "unknown".to_owned(), |time| time.strftime("%Y-%m-%d").to_string());
    let target = variable("TARGET").unwrap_or_default();
    let features: Vec<&str> = [("CARGO_FEATURE_MCP", "mcp"), ("CARGO_FEATURE_OTEL", "otel")]
        .into_iter()
        .filter_map(|(name, feature)| variable(name).map(|_| feature))
        .collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(", ") };
    println!("cargo::rustc-env=TAMBOUR_BUILD_COMMIT={commit}");
    println!("cargo::rustc-env=TAMBOUR_BUILD_DATE={date}");
    println!("cargo::rustc-env=TAMBOUR_BUILD_TARGET={target}");
    println!("cargo::rustc-env=TAMBOUR_BUILD_FEATURES={features}");
}

/// Value of an environment variable that is set and not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Returns the commit of the checkout, with `-changed` if files differ from it, and its time in seconds;
/// `None` outside a checkout.
fn read_checkout() -> Option<(String, String)> {
    let log = run_git(&["log", "-1", "--format=%h %ct"])?;
    let (commit, time) = log.split_once(' ')?;
    for name in ["HEAD", "index"] {
        if let Some(path) = run_git(&["rev-parse", "--path-format=absolute", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    let is_changed =
        run_git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|out| !out.is_empty());
    Some((format!("{commit}{}", if is_changed { "-changed" } else { "" }), time.to_owned()))
}

/// Standard output of a git command; `None` if it fails.
fn run_git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
