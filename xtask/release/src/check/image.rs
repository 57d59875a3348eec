//! The image, unpacked by umoci and run by runc in namespaces of its own.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};

use super::{Outcome, is_root};
use crate::dist::{IMAGE_LIMIT, IMAGE_USER, Release, read_tree};
use crate::server::LocalServer;
use crate::{find_program, read_command, renew_folder, run_command};

/// Programs that unpack and run images.
const TOOLS: &[&str] = &["umoci", "runc"];

pub(super) fn check(release: &Release) -> anyhow::Result<Outcome> {
    let image =
        read_tree(&release.out)?.into_iter().find(|path| path.to_string_lossy().ends_with(".oci.tar"));
    let Some(image) = image else {
        return Ok(Outcome::Omission("there is none: the program is not for Linux".to_owned()));
    };
    let missing: Vec<&str> = TOOLS.iter().copied().filter(|tool| find_program(tool).is_none()).collect();
    if !missing.is_empty() || !is_root() {
        let missing = if missing.is_empty() { "an administrator".to_owned() } else { missing.join(" and ") };
        return Ok(Outcome::Omission(format!("a container needs {missing}")));
    }
    let folder = release.work.join("check-image");
    renew_folder(&folder)?;
    let layout = folder.join("layout");
    std::fs::create_dir(&layout)?;
    run_command(Command::new("tar").arg("-xf").arg(release.out.join(image)).arg("-C").arg(&layout))?;
    let bundle = folder.join("bundle");
    let mut umoci = Command::new("umoci");
    umoci.arg("unpack").arg("--image").arg(format!("{}:{}", layout.display(), release.version)).arg(&bundle);
    read_command(&mut umoci)?;
    let root = bundle.join("rootfs");
    let size = check_content(&root)?;
    // The debug build is larger.
    anyhow::ensure!(release.is_check || size <= IMAGE_LIMIT, "the image has {size} bytes");
    prepare(&bundle)?;
    run_container(&bundle)?;
    Ok(Outcome::Success(format!(
        "{} MB unpacked, {} MB of them the program",
        size / 1_000_000,
        file_size(&root.join("usr/bin/tambour"))? / 1_000_000
    )))
}

/// Checks the files of the image and returns their size in bytes.
fn check_content(root: &Path) -> anyhow::Result<u64> {
    let mut size = 0;
    for path in read_tree(root)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        anyhow::ensure!(
            !["sh", "bash", "busybox", "dash"].contains(&name.as_str()),
            "{} is a shell",
            path.display()
        );
        size += file_size(&root.join(&path))?;
    }
    anyhow::ensure!(
        file_size(&root.join("etc/ssl/certs/ca-certificates.crt"))? > 100_000,
        "there are certificates"
    );
    Ok(size)
}

fn file_size(path: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(path).with_context(|| path.display().to_string())?.len())
}

/// Changes the configuration of the container: no terminal, a key, and the demo as upstream.
fn prepare(bundle: &Path) -> anyhow::Result<()> {
    let path = bundle.join("config.json");
    let mut configuration: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
    let process = &mut configuration["process"];
    anyhow::ensure!(process["user"]["uid"] == IMAGE_USER && process["cwd"] == "/data", "{process}");
    anyhow::ensure!(process["args"] == json!(["/usr/bin/tambour", "serve"]), "{process}");
    process["terminal"] = json!(false);
    let environment = process["env"].as_array_mut().context("the image has variables")?;
    environment.push(json!("TAMBOUR_API_KEY=a-key-for-this-check-alone"));
    environment.push(json!("TAMBOUR_UPSTREAM=demo"));
    // umoci mounts memory over volumes, which belongs to root; engines begin a volume with the folder of the image.
    let mounts = configuration["mounts"].as_array_mut().context("the container has mounts")?;
    mounts.retain(|mount| mount["destination"] != "/data");
    Ok(std::fs::write(&path, serde_json::to_vec(&configuration)?)?)
}

/// Runs the container, asks for its health from within, and stops it.
fn run_container(bundle: &Path) -> anyhow::Result<()> {
    let id = format!("tambour-check-{}", std::process::id());
    let runc = |words: &[&str]| {
        let mut command = Command::new("runc");
        command.args(words);
        command
    };
    let mut start = runc(&["run", "--bundle"]);
    start.arg(bundle).arg(&id);
    let result = LocalServer::start_command(start).and_then(|server| {
        for arguments in [&["health"][..], &["health", "--ready"]] {
            let mut health = runc(&["exec", &id, "/usr/bin/tambour"]);
            let answer = read_command(health.args(arguments))?;
            anyhow::ensure!(answer == "ok\n", "{arguments:?}: {answer}");
        }
        let shell = runc(&["exec", &id, "/bin/sh", "-c", "true"]).output()?;
        anyhow::ensure!(!shell.status.success(), "the image has a shell");
        anyhow::ensure!(bundle.join("rootfs/data/tambour.sqlite").is_file(), "the data is in /data");
        run_command(&mut runc(&["kill", &id, "TERM"]))?;
        let status = server.wait()?;
        anyhow::ensure!(status.success(), "the container ended with {status}");
        Ok(())
    });
    // It is gone already, unless something failed.
    let _ = runc(&["delete", "--force", &id]).output();
    result
}
