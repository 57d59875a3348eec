//! The tarball, unpacked into an empty folder.

use std::process::Command;

use super::Outcome;
use crate::dist::{COMPLETIONS, Release, read_tree};
use crate::{find_program, read_command, renew_folder, run_command};

pub(super) fn check(release: &Release) -> anyhow::Result<Outcome> {
    let folder = release.work.join("check-tarball");
    renew_folder(&folder)?;
    let name = format!("tambour-{}-{}", release.version, release.target);
    let mut tar = Command::new("tar");
    run_command(tar.arg("-xzf").arg(release.out.join(format!("{name}.tar.gz"))).arg("-C").arg(&folder))?;
    let top = folder.join(&name);
    let mut program = Command::new(top.join("tambour"));
    let version = read_command(program.arg("--version").env_clear().current_dir(&folder))?;
    anyhow::ensure!(version.starts_with(&format!("tambour {}\ncommit: ", release.version)), "{version}");
    let mut json = Command::new("sh");
    json.args(["-c", "printf '{\"a\": [1, 2,}' | ./tambour json"]).current_dir(&top);
    anyhow::ensure!(read_command(&mut json)?.trim() == r#"{"a":[1,2]}"#, "`tambour json` repairs a value");
    let pages = read_tree(&top.join("man/man1"))?;
    anyhow::ensure!(
        pages.len() > 20 && pages.iter().any(|page| page.ends_with("tambour-serve.1")),
        "{pages:?}"
    );
    let mut skipped = Vec::new();
    for (shell, file) in COMPLETIONS {
        let script = top.join("completions").join(file);
        // PowerShell is called `pwsh`. Each shell reads the script without running it.
        let (program, arguments): (&str, &[&str]) = match *shell {
            "fish" => ("fish", &["--no-execute"]),
            "powershell" => ("pwsh", &["-NoProfile", "-File"]),
            shell => (shell, &["-n"]),
        };
        if find_program(program).is_some() {
            read_command(Command::new(program).args(arguments).arg(&script))?;
        } else {
            skipped.push(program);
        }
    }
    Ok(Outcome::Success(match skipped[..] {
        [] => String::new(),
        _ => format!("completions not read, since these are not installed: {}", skipped.join(", ")),
    }))
}
