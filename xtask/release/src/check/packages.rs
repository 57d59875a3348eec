//! Wheels in clean environments, and the SBOM.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Outcome, tools_python};
use crate::dist::{Release, read_tree, sbom_name};
use crate::first_page::FirstPage;
use crate::{read_command, renew_folder, repository_root, run_command};

/// Clean environment of Python with a wheel.
struct Environment {
    python: PathBuf,
    folder: PathBuf,
}

impl Environment {
    /// Installs the wheel of a folder of the artefacts, without an index.
    fn create(release: &Release, wheels: &str) -> anyhow::Result<Environment> {
        let folder = release.work.join(format!("check-{wheels}"));
        renew_folder(&folder)?;
        let environment = folder.join("environment");
        run_command(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        let environment = Environment { python: environment.join("bin/python"), folder };
        let mut pip = environment.command(&environment.python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
        for wheel in read_tree(&release.out.join(wheels))? {
            pip.arg(release.out.join(wheels).join(wheel));
        }
        run_command(&mut pip)?;
        Ok(environment)
    }

    /// Command that finds no programs but those of the environment: no compiler above all.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", self.python.with_file_name("")).env("HOME", &self.folder);
        command.current_dir(&self.folder);
        command
    }
}

/// Runs the program of the first page with the wheel without the command.
pub(super) fn check_library(release: &Release) -> anyhow::Result<Outcome> {
    let environment = Environment::create(release, "python-library")?;
    let page = FirstPage::read()?;
    let mut program = environment.command(&environment.python);
    page.compare("Python", &read_command(program.arg("-c").arg(page.program("python")?))?)?;
    Ok(Outcome::Success(String::new()))
}

/// Runs the command of the wheel that has it, and the program of the first page.
pub(super) fn check_command(release: &Release) -> anyhow::Result<Outcome> {
    let environment = Environment::create(release, "python")?;
    let version = format!("tambour {}\n", release.version);
    let mut command = environment.command(&environment.python.with_file_name("tambour"));
    anyhow::ensure!(read_command(command.arg("-V"))? == version, "the command says its version");
    let mut module = environment.command(&environment.python);
    anyhow::ensure!(
        read_command(module.args(["-m", "tambour", "-V"]))? == version,
        "the module finds the command"
    );
    let page = FirstPage::read()?;
    let mut program = environment.command(&environment.python);
    page.compare("Python", &read_command(program.arg("-c").arg(page.program("python")?))?)?;
    Ok(Outcome::Success(String::new()))
}

/// Program that validates an SBOM strictly by the schema of its version.
const VALIDATE_SBOM: &str = "import sys\n\
    from cyclonedx.schema import SchemaVersion\n\
    from cyclonedx.validation.json import JsonStrictValidator\n\
    error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())\n\
    sys.exit(str(error) if error else 0)\n";

/// Validates the SBOM with the schema of CycloneDX.
pub(super) fn check_sbom(release: &Release) -> anyhow::Result<Outcome> {
    let path = release.out.join(sbom_name(&release.version));
    let validate = |path: &Path| {
        let mut python = Command::new(tools_python()?);
        read_command(python.args(["-c", VALIDATE_SBOM]).arg(path))
    };
    validate(&path)?;
    let text = std::fs::read_to_string(&path)?;
    anyhow::ensure!(text.contains("pkg:cargo/tokio@"), "the server is linked to tokio");
    let root = repository_root().display().to_string();
    anyhow::ensure!(!text.contains(&root), "the SBOM has a path of this machine");
    // The validator is one that can refuse.
    let broken = release.work.join("broken.cdx.json");
    std::fs::write(&broken, text.replacen("\"specVersion\"", "\"version_of_spec\"", 1))?;
    anyhow::ensure!(validate(&broken).is_err(), "the validator accepts anything");
    Ok(Outcome::Success(String::new()))
}
