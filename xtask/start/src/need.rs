//! Programs that the tests need: installed if possible without questions, otherwise named exactly.

use std::process::{Command, Stdio};

/// Required program.
struct Need {
    /// Command that succeeds if the program is there.
    shown_by: &'static [&'static str],
    why: &'static str,
    /// Component of the toolchain.
    component: Option<&'static str>,
    /// Package for each package manager.
    packages: &'static [(&'static str, &'static str)],
}

const NEEDS: &[Need] = &[
    Need {
        shown_by: &["cargo", "fmt", "--version"],
        why: "the format of the code",
        component: Some("rustfmt"),
        packages: &[("apt-get", "rustfmt"), ("dnf", "rustfmt"), ("apk", "rustfmt"), ("pacman", "rust")],
    },
    Need {
        shown_by: &["cargo", "clippy", "--version"],
        why: "lints",
        component: Some("clippy"),
        packages: &[
            ("apt-get", "rust-clippy"),
            ("dnf", "clippy"),
            ("apk", "rust-clippy"),
            ("pacman", "rust"),
        ],
    },
    Need {
        shown_by: &["node", "--version"],
        why: "the test of an example, and clients of other protocols",
        component: None,
        packages: &[
            ("apt-get", "nodejs"),
            ("dnf", "nodejs"),
            ("apk", "nodejs"),
            ("pacman", "nodejs"),
            ("brew", "node"),
        ],
    },
    Need {
        shown_by: &["npm", "--version"],
        why: "clients of other protocols",
        component: None,
        packages: &[
            ("apt-get", "npm"),
            ("dnf", "nodejs-npm"),
            ("apk", "npm"),
            ("pacman", "npm"),
            ("brew", "node"),
        ],
    },
    Need {
        shown_by: &["python3", "-c", "import ensurepip, venv"],
        why: "clients of other protocols in Python",
        component: None,
        packages: &[
            ("apt-get", "python3-venv"),
            ("dnf", "python3-pip"),
            ("apk", "py3-pip"),
            ("pacman", "python"),
            ("brew", "python3"),
        ],
    },
    Need {
        shown_by: &["chromium", "--version"],
        why: "the studio in a browser",
        component: None,
        packages: &[
            ("apt-get", "chromium"),
            ("dnf", "chromium"),
            ("apk", "chromium"),
            ("pacman", "chromium"),
        ],
    },
    Need {
        shown_by: &["fc-list", ":lang=zh", "--quiet"],
        why: "Chinese in the studio",
        component: None,
        packages: &[
            ("apt-get", "fonts-wqy-zenhei"),
            ("dnf", "wqy-zenhei-fonts"),
            ("apk", "font-wqy-zenhei"),
            ("pacman", "wqy-zenhei"),
        ],
    },
];

/// Package managers, with their commands for an installation without questions.
const MANAGERS: &[(&str, &[&str])] = &[
    ("apt-get", &["install", "--yes", "--no-install-recommends"]),
    ("dnf", &["install", "--assumeyes"]),
    ("apk", &["add"]),
    ("pacman", &["--sync", "--noconfirm"]),
    ("brew", &["install"]),
];

/// Installs missing programs, or names them, before anything else runs.
pub(crate) fn require() -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for need in NEEDS.iter().filter(|need| !need.is_there()) {
        let words = need.shown_by.iter().copied().take_while(|word| !word.starts_with('-'));
        let name = words.collect::<Vec<_>>().join(" ");
        let way = need.way();
        if let Some(way) = way.as_ref().filter(|way| way.is_free()) {
            println!("`{name}` is missing ({}): {}", need.why, way.shown());
            way.run();
            if need.is_there() {
                continue;
            }
        }
        let how =
            way.map_or_else(|| "install it".to_owned(), |way| format!("install it with `{}`", way.shown()));
        missing.push(format!("`{name}` is missing ({}): {how}", need.why));
    }
    anyhow::ensure!(missing.is_empty(), "{}", missing.join("\n"));
    Ok(())
}

/// Returns whether a program is installed.
pub(crate) fn runs(program: &str) -> bool {
    succeeds(&[program, "--version"])
}

fn succeeds(command: &[&str]) -> bool {
    let mut process = Command::new(command[0]);
    process.args(&command[1..]).current_dir(crate::root()).stdout(Stdio::null()).stderr(Stdio::null());
    process.status().is_ok_and(|status| status.success())
}

/// Way to install a program.
struct Way {
    command: Vec<&'static str>,
    /// True if it needs administrator rights.
    privileged: bool,
}

impl Need {
    fn is_there(&self) -> bool {
        succeeds(self.shown_by)
    }

    fn way(&self) -> Option<Way> {
        if let Some(component) = self.component.filter(|_| runs("rustup")) {
            return Some(Way { command: vec!["rustup", "component", "add", component], privileged: false });
        }
        MANAGERS.iter().find_map(|(manager, install)| {
            let (_, package) = self.packages.iter().find(|(of, _)| of == manager)?;
            let command = || [&[*manager], *install, &[*package]].concat();
            runs(manager).then(|| Way { command: command(), privileged: *manager != "brew" })
        })
    }
}

impl Way {
    /// Returns whether it works without a password prompt.
    fn is_free(&self) -> bool {
        !self.privileged || is_root() || succeeds(&["sudo", "-n", "true"])
    }

    fn full(&self) -> Vec<&'static str> {
        let before: &[&str] = if self.privileged && !is_root() { &["sudo"] } else { &[] };
        [before, &self.command].concat()
    }

    fn shown(&self) -> String {
        self.full().join(" ")
    }

    /// Installs the program; the result is checked afterwards.
    fn run(&self) {
        let full = self.full();
        if self.command[0] == "apt-get" {
            // Package lists may be outdated.
            let update = full.iter().take_while(|word| **word != "install").copied().chain(["update"]);
            let update: Vec<&str> = update.collect();
            let _ = Command::new(update[0]).args(&update[1..]).status();
        }
        let _ = Command::new(full[0]).args(&full[1..]).status();
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::{MANAGERS, NEEDS, Way};

    #[test]
    fn each_package_has_a_manager_that_is_known() {
        for need in NEEDS {
            for (manager, package) in need.packages {
                assert!(MANAGERS.iter().any(|(known, _)| known == manager), "{manager} installs {package}");
            }
        }
    }

    #[test]
    fn a_way_is_a_whole_command() {
        let way = Way { command: vec!["brew", "install", "node"], privileged: false };
        assert_eq!(way.shown(), "brew install node");
    }
}
