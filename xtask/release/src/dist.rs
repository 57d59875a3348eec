//! `cargo xtask dist`: the files of a release, made on one machine into `target/dist`.
//!
//! The same sources, compiler and `SOURCE_DATE_EPOCH` give the same archives: entries are sorted, and have the
//! time of the commit. `--check` makes each artefact from a debug build, then installs and runs it.

mod archive;
mod chart;
mod deb;
mod image;
mod npm;
mod packages;
mod sbom;
mod sums;
mod tarball;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;

use crate::{build_debug, check, read_command, renew_folder, repository_root, run_command};

pub(crate) use archive::read_tree;
pub(crate) use image::{IMAGE_LIMIT, IMAGE_USER};
pub(crate) use sbom::file_name as sbom_name;

/// Release in the making.
pub(crate) struct Release {
    /// Folder of the artefacts.
    pub(crate) out: PathBuf,
    /// Folder of everything else that is made.
    pub(crate) work: PathBuf,
    /// Version of the workspace.
    pub(crate) version: String,
    /// Commit, abbreviated.
    commit: String,
    /// Time of the commit in seconds since 1970, or `SOURCE_DATE_EPOCH`.
    epoch: u64,
    /// Platform of the program, such as `x86_64-unknown-linux-gnu`.
    pub(crate) target: String,
    /// Program without symbols.
    pub(crate) program: PathBuf,
    /// Built library of the Python package; built by maturin if absent.
    library: Option<PathBuf>,
    /// Beginning of the addresses of the artefacts, for the formula.
    base_url: String,
    /// True if compression should rather be fast than small.
    pub(crate) is_check: bool,
}

/// Address for formulas of a release whose address is not given.
const UNKNOWN_URL: &str = "https://tambour.example/releases";

/// Arguments of the command.
#[derive(Default)]
struct Arguments {
    program: Option<PathBuf>,
    out: Option<PathBuf>,
    base_url: Option<String>,
    is_check: bool,
    /// True if artefacts that are there already are checked.
    is_verification: bool,
}

impl Arguments {
    fn parse(words: &[String]) -> anyhow::Result<Arguments> {
        let mut arguments = Arguments::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--binary" => arguments.program = Some(value()?.into()),
                "--out" => arguments.out = Some(value()?.into()),
                "--base-url" => arguments.base_url = Some(value()?.trim_end_matches('/').to_owned()),
                "--check" => arguments.is_check = true,
                "--verify" => arguments.is_verification = true,
                _ => anyhow::bail!(
                    "usage: cargo xtask dist [--check | --verify] [--binary PATH] [--out DIR] [--base-url URL]"
                ),
            }
        }
        Ok(arguments)
    }
}

pub(crate) fn run(words: &[String]) -> anyhow::Result<()> {
    let arguments = Arguments::parse(words)?;
    if arguments.is_verification {
        return check::run(&Release::open(arguments)?);
    }
    let release = Release::prepare(arguments)?;
    release.make()?;
    for path in read_tree(&release.out)? {
        println!("{}", release.out.join(path).display());
    }
    if release.is_check { check::run(&release) } else { Ok(()) }
}

impl Release {
    /// Opens the artefacts that are in their folder already.
    fn open(arguments: Arguments) -> anyhow::Result<Release> {
        let root = repository_root();
        let git = |words: &[&str]| read_command(Command::new("git").args(words).current_dir(&root)).ok();
        let commit = git(&["rev-parse", "--short=12", "HEAD"]);
        let commit = commit.map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text.parse().context("SOURCE_DATE_EPOCH is a number of seconds")?,
            Err(_) => {
                git(&["log", "-1", "--format=%ct"]).and_then(|text| text.trim().parse().ok()).unwrap_or(0)
            }
        };
        let rustc = read_command(Command::new("rustc").args(["--version", "--verbose"]))?;
        let target = rustc.lines().find_map(|line| line.strip_prefix("host: "));
        let name = if arguments.is_check { "dist-check" } else { "dist" };
        let out = arguments.out.unwrap_or_else(|| root.join("target").join(name));
        std::fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
        let work = root.join("target").join(format!("{name}-work"));
        Ok(Release {
            out: out.canonicalize()?,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit,
            epoch,
            target: target.context("rustc says its host")?.to_owned(),
            program: work.join("tambour"),
            work,
            library: None,
            base_url: arguments.base_url.unwrap_or_else(|| UNKNOWN_URL.to_owned()),
            is_check: arguments.is_check,
        })
    }

    /// Empties the folders, and finds or builds the program.
    fn prepare(mut arguments: Arguments) -> anyhow::Result<Release> {
        let program = arguments.program.take();
        let mut release = Release::open(arguments)?;
        if release.is_check {
            release.library = Some(build_debug(&["--lib"])?.join(library_name()));
        }
        let program = match program {
            Some(program) => program,
            None if release.is_check => build_debug(&["--bin", "tambour"])?.join("tambour"),
            None => build_program(&release.commit, release.epoch)?,
        };
        renew_folder(&release.out)?;
        renew_folder(&release.work)?;
        run_command(Command::new("strip").arg("-o").arg(&release.program).arg(&program))?;
        Ok(release)
    }

    /// Makes all artefacts; the checksums are last.
    fn make(&self) -> anyhow::Result<()> {
        let pages = self.work.join("man");
        run_command(Command::new(&self.program).args(["man", "--folder"]).arg(&pages))?;
        let completions = self.work.join("completions");
        std::fs::create_dir_all(&completions)?;
        for (shell, file) in COMPLETIONS {
            let script = read_command(Command::new(&self.program).args(["completions", shell]))?;
            std::fs::write(completions.join(file), script)?;
        }
        tarball::make(self).context("tarball")?;
        deb::make(self).context(".deb")?;
        image::make(self).context("image")?;
        packages::make_wheels(self).context("wheels")?;
        npm::make(self).context("npm packages")?;
        sbom::make(self).context("SBOM")?;
        chart::make(self).context("chart")?;
        sums::write_formula(self).context("formula")?;
        sums::write_sums(&self.out).context("checksums")
    }

    /// Name of the processor as Debian and OCI spell it.
    fn architecture(&self) -> &str {
        match self.target.split('-').next() {
            Some("x86_64") => "amd64",
            Some("aarch64") => "arm64",
            other => other.unwrap_or_default(),
        }
    }

    /// Time of the release in the form of RFC 3339.
    fn time(&self) -> anyhow::Result<String> {
        let seconds = i64::try_from(self.epoch).context("SOURCE_DATE_EPOCH")?;
        Ok(jiff::Timestamp::from_second(seconds)?.to_string())
    }

    /// File of the repository.
    fn source(&self, path: &str) -> anyhow::Result<Vec<u8>> {
        let path = repository_root().join(path);
        std::fs::read(&path).with_context(|| path.display().to_string())
    }
}

/// Shells, with the file names that they expect.
pub(crate) const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "tambour.bash"),
    ("fish", "tambour.fish"),
    ("powershell", "_tambour.ps1"),
    ("zsh", "_tambour"),
];

/// Builds the program for a release.
fn build_program(commit: &str, epoch: u64) -> anyhow::Result<PathBuf> {
    let root = repository_root();
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "--package", "tambour-cli"]).current_dir(&root);
    cargo.env("TAMBOUR_COMMIT", commit).env("SOURCE_DATE_EPOCH", epoch.to_string());
    run_command(&mut cargo)?;
    Ok(root.join("target/release/tambour"))
}

/// File name of the library of the Python package.
fn library_name() -> String {
    format!("{}_native{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

#[cfg(test)]
mod tests {
    use super::Arguments;

    #[test]
    fn arguments_have_their_values() {
        let parse = |line: &str| Arguments::parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let arguments = parse("--binary a --base-url https://b/ --check").unwrap();
        assert_eq!(arguments.base_url.as_deref(), Some("https://b"));
        assert!(arguments.is_check && arguments.program.is_some_and(|program| program.ends_with("a")));
        assert!(parse("--binary").is_err() && parse("--nonsense").is_err());
    }
}
