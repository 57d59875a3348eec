//! Programs that the tests need. Missing ones are installed if no password is needed, else an error says how
//! to install them.

use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Required program.
struct RequiredProgram {
    /// Command that succeeds if the program is installed.
    check_command: &'static [&'static str],
    /// Part of the tests that needs the program, for messages.
    purpose: &'static str,
    /// Component of the toolchain for `rustup`, if the program is one.
    component: Option<&'static str>,
    /// Package managers, each with the name of its package.
    packages: &'static [(&'static str, &'static str)],
    /// Program that can be used if this one cannot be installed.
    substitute: Option<&'static str>,
}

/// Programs that `cargo xtask test` needs.
const REQUIRED_PROGRAMS: &[RequiredProgram] = &[
    RequiredProgram {
        check_command: &["cargo", "fmt", "--version"],
        purpose: "the format of the code",
        component: Some("rustfmt"),
        packages: &[("apt-get", "rustfmt"), ("dnf", "rustfmt"), ("apk", "rustfmt"), ("pacman", "rust")],
        substitute: None,
    },
    RequiredProgram {
        check_command: &["cargo", "clippy", "--version"],
        purpose: "lints",
        component: Some("clippy"),
        packages: &[
            ("apt-get", "rust-clippy"),
            ("dnf", "clippy"),
            ("apk", "rust-clippy"),
            ("pacman", "rust"),
        ],
        substitute: None,
    },
    RequiredProgram {
        check_command: &["node", "--version"],
        purpose: "the test of an example, and clients of other protocols",
        component: None,
        packages: &[
            ("apt-get", "nodejs"),
            ("dnf", "nodejs"),
            ("apk", "nodejs"),
            ("pacman", "nodejs"),
            ("brew", "node"),
        ],
        substitute: None,
    },
    RequiredProgram {
        check_command: &["npm", "--version"],
        purpose: "clients of other protocols",
        component: None,
        packages: &[
            ("apt-get", "npm"),
            ("dnf", "nodejs-npm"),
            ("apk", "npm"),
            ("pacman", "npm"),
            ("brew", "node"),
        ],
        substitute: None,
    },
    RequiredProgram {
        check_command: &["python3", "-c", "import ensurepip, venv"],
        purpose: "clients of other protocols in Python",
        component: None,
        packages: &[
            ("apt-get", "python3-venv"),
            ("dnf", "python3-pip"),
            ("apk", "py3-pip"),
            ("pacman", "python"),
            ("brew", "python3"),
        ],
        substitute: None,
    },
    RequiredProgram {
        check_command: &["java", "-version"],
        purpose: "Spark, which reads batches of replies",
        component: None,
        packages: &[
            ("apt-get", "default-jre-headless"),
            ("dnf", "java-21-openjdk-headless"),
            ("apk", "openjdk21-jre-headless"),
            ("pacman", "jre-openjdk-headless"),
            ("brew", "openjdk"),
        ],
        substitute: None,
    },
    RequiredProgram {
        check_command: &["initdb", "--version"],
        purpose: "servers that share a PostgreSQL database",
        component: None,
        packages: &[
            ("apt-get", "postgresql"),
            ("dnf", "postgresql-server"),
            ("apk", "postgresql"),
            ("pacman", "postgresql"),
            ("brew", "postgresql@17"),
        ],
        substitute: None,
    },
    RequiredProgram {
        check_command: &["faketime", "--version"],
        purpose: "servers whose clocks are wrong",
        component: None,
        packages: &[
            ("apt-get", "faketime"),
            ("dnf", "libfaketime"),
            ("apk", "libfaketime"),
            ("pacman", "libfaketime"),
            ("brew", "libfaketime"),
        ],
        substitute: None,
    },
    RequiredProgram {
        // The headless shell takes a sixth less processor time than the whole browser.
        check_command: &["chromium-headless-shell", "--version"],
        purpose: "the studio in a browser",
        component: None,
        packages: &[
            ("apt-get", "chromium-headless-shell"),
            ("dnf", "chromium"),
            ("apk", "chromium"),
            ("pacman", "chromium"),
        ],
        substitute: Some("chromium"),
    },
    RequiredProgram {
        check_command: &["fc-list", ":lang=zh", "--quiet"],
        purpose: "Chinese in the studio",
        component: None,
        packages: &[
            ("apt-get", "fonts-wqy-zenhei"),
            ("dnf", "wqy-zenhei-fonts"),
            ("apk", "font-wqy-zenhei"),
            ("pacman", "wqy-zenhei"),
        ],
        substitute: None,
    },
];

/// Programs that check the files of a release, with the name of their package. Checks say which of them are
/// missing.
const OPTIONAL_PROGRAMS: &[(&str, &str)] =
    &[("umoci", "umoci"), ("runc", "runc"), ("ruby", "ruby"), ("zsh", "zsh"), ("fish", "fish")];

/// Package managers, with their commands for an installation without questions.
const PACKAGE_MANAGERS: &[(&str, &[&str])] = &[
    ("apt-get", &["install", "--yes", "--no-install-recommends"]),
    ("dnf", &["install", "--assumeyes"]),
    ("apk", &["add"]),
    ("pacman", &["--sync", "--noconfirm"]),
    ("brew", &["install"]),
];

/// Installs missing programs.
///
/// # Errors
/// Programs are still missing; the message says for each how to install it.
pub(crate) fn require_programs() -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for program in REQUIRED_PROGRAMS.iter().filter(|program| !program.is_present()) {
        let words = program.check_command.iter().copied().take_while(|word| !word.starts_with('-'));
        let name = words.collect::<Vec<_>>().join(" ");
        let install_method = program.install_method();
        let unattended_method = install_method.as_ref().filter(|method| method.needs_no_password());
        if let Some(method) = unattended_method {
            println!("`{name}` is missing ({}): {}", program.purpose, method.format_command());
            method.install();
            if program.is_present() {
                continue;
            }
        }
        if program.has_substitute() {
            continue;
        }
        let hint = install_method.map_or_else(
            || "install it".to_owned(),
            |method| format!("install it with `{}`", method.format_command()),
        );
        missing.push(format!("`{name}` is missing ({}): {hint}", program.purpose));
    }
    anyhow::ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(())
}

/// Installs missing programs that are only useful, where Debian's package manager needs no password for it.
pub(crate) fn install_optional_programs() {
    let missing = OPTIONAL_PROGRAMS.iter().filter(|(program, _)| !succeeds(&[program, "--version"]));
    let packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if packages.is_empty() || !is_installed("apt-get") {
        return;
    }
    let command = ["apt-get", "install", "--yes", "--no-install-recommends"];
    let method = InstallMethod { command: [&command[..], &packages].concat(), is_privileged: true };
    if method.needs_no_password() {
        println!("{} are missing (files of a release): {}", packages.join(", "), method.format_command());
        method.install();
    }
}

/// Returns `true` if a program is installed.
pub(crate) fn is_installed(program: &str) -> bool {
    succeeds(&[program, "--version"])
}

/// Runs a command without its output and returns whether it succeeded.
fn succeeds(command: &[&str]) -> bool {
    let mut process = Command::new(command[0]);
    process
        .args(&command[1..])
        .current_dir(crate::repository_root())
        .env("PATH", search_path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    process.status().is_ok_and(|status| status.success())
}

/// Returns the search path, with the folders in which Debian keeps the programs of PostgreSQL and of
/// administrators.
fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    // `runc` is in a folder of administrators.
    let folders = versions.map(|version| version.path().join("bin")).chain(["/usr/sbin".into()]);
    let all_folders: Vec<_> = std::env::split_paths(&path).chain(folders).collect();
    std::env::join_paths(all_folders).unwrap_or(path)
}

/// Command that installs a program.
struct InstallMethod {
    command: Vec<&'static str>,
    /// True if it needs administrator rights.
    is_privileged: bool,
}

impl RequiredProgram {
    fn is_present(&self) -> bool {
        succeeds(self.check_command)
    }

    fn has_substitute(&self) -> bool {
        self.substitute.is_some_and(is_installed)
    }

    /// Finds the first method whose installer is present.
    fn install_method(&self) -> Option<InstallMethod> {
        if let Some(component) = self.component.filter(|_| is_installed("rustup")) {
            return Some(InstallMethod {
                command: vec!["rustup", "component", "add", component],
                is_privileged: false,
            });
        }
        PACKAGE_MANAGERS.iter().find_map(|(manager, install)| {
            let (_, package) =
                self.packages.iter().find(|(package_manager, _)| package_manager == manager)?;
            let command = || [&[*manager], *install, &[*package]].concat();
            is_installed(manager)
                .then(|| InstallMethod { command: command(), is_privileged: *manager != "brew" })
        })
    }
}

impl InstallMethod {
    /// Returns `true` if the command works without a password prompt.
    fn needs_no_password(&self) -> bool {
        !self.is_privileged || is_root() || succeeds(&["sudo", "-n", "true"])
    }

    /// Command with `sudo` before it, if needed.
    fn full_command(&self) -> Vec<&'static str> {
        let prefix: &[&str] = if self.is_privileged && !is_root() { &["sudo"] } else { &[] };
        [prefix, &self.command].concat()
    }

    fn format_command(&self) -> String {
        self.full_command().join(" ")
    }

    /// Installs the program; the result is checked afterwards.
    fn install(&self) {
        let command = self.full_command();
        if self.command[0] == "apt-get" {
            // Package lists may be outdated, so `apt-get update` runs first, with `sudo` if `install` needs it.
            let update = command.iter().take_while(|word| **word != "install").copied().chain(["update"]);
            let update: Vec<&str> = update.collect();
            let _ = Command::new(update[0]).args(&update[1..]).status();
        }
        let _ = Command::new(command[0]).args(&command[1..]).status();
    }
}

/// Returns `true` if this user is the administrator.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

/// Returns `true` if the toolchain has the standard library of a target.
pub(crate) fn has_target(target: &str) -> bool {
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    output.is_ok_and(|output| std::path::Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

#[cfg(test)]
mod tests {
    use super::{InstallMethod, PACKAGE_MANAGERS, REQUIRED_PROGRAMS};

    #[test]
    fn each_package_manager_has_an_installation_command() {
        for program in REQUIRED_PROGRAMS {
            for (manager, package) in program.packages {
                assert!(
                    PACKAGE_MANAGERS.iter().any(|(known_manager, _)| known_manager == manager),
                    "{manager} installs {package}"
                );
            }
        }
    }

    #[test]
    fn a_method_is_shown_as_a_whole_command() {
        let method = InstallMethod { command: vec!["brew", "install", "node"], is_privileged: false };
        assert_eq!(method.format_command(), "brew install node");
    }
}
