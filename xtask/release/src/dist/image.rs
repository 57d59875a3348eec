//! OCI image without a daemon: a layout of two layers, in an archive that `podman load`, `docker load` and
//! `skopeo` take. It has the program, the libraries that it is linked to, certificates and a writable `/data`;
//! no shell, no package manager, no root.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::{Value, json};

use super::Release;
use super::archive::{Entries, Entry, add_file, compress, pack};
use super::sums::hex_digest;

/// User and group of the process.
pub(crate) const IMAGE_USER: u64 = 65532;

/// Maximum size in bytes of the unpacked image of a release.
pub(crate) const IMAGE_LIMIT: u64 = 60_000_000;

/// Certificates of the machine that makes the image.
const CERTIFICATES: &[&str] = &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Nanoseconds of a second, the unit of health checks.
const SECOND: u64 = 1_000_000_000;

/// Blobs of the layout by path.
struct Layout {
    entries: Entries,
}

pub(super) fn make(release: &Release) -> anyhow::Result<()> {
    if !release.target.contains("linux") {
        println!("image: left out, the program is not for Linux");
        return Ok(());
    }
    let mut layout = Layout { entries: Entries::new() };
    let mut base = base_layer(release)?;
    let mut program = Entries::new();
    add_file(&mut program, "usr/bin/tambour", std::fs::read(&release.program)?, 0o755);
    for library in find_libraries(&release.program)? {
        let content = std::fs::read(&library).with_context(|| library.display().to_string())?;
        add_file(&mut base, library.strip_prefix("/")?, content, 0o755);
    }
    let (mut layers, mut differences) = (Vec::new(), Vec::new());
    for entries in [base, program] {
        let archive = pack(&entries, release.epoch)?;
        differences.push(format!("sha256:{}", hex_digest(&archive)));
        let blob = compress(release, &archive)?;
        layers.push(layout.add("application/vnd.oci.image.layer.v1.tar+gzip", blob));
    }
    let configuration = serde_json::to_vec(&configuration(release, &differences)?)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": layout.add("application/vnd.oci.image.config.v1+json", configuration),
        "layers": layers,
    });
    let mut manifest =
        layout.add("application/vnd.oci.image.manifest.v1+json", serde_json::to_vec(&manifest)?);
    manifest["annotations"] = json!({
        "org.opencontainers.image.ref.name": release.version,
        "io.containerd.image.name": format!("docker.io/library/tambour:{}", release.version),
    });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    add_file(&mut layout.entries, "index.json", serde_json::to_vec(&index)?, 0o644);
    add_file(&mut layout.entries, "oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(), 0o644);
    let name = format!("tambour-{}-{}.oci.tar", release.version, release.architecture());
    Ok(std::fs::write(release.out.join(name), pack(&layout.entries, release.epoch)?)?)
}

impl Layout {
    /// Adds a blob and returns its descriptor.
    fn add(&mut self, media_type: &str, blob: Vec<u8>) -> Value {
        let digest = hex_digest(&blob);
        let size = blob.len();
        add_file(&mut self.entries, Path::new("blobs/sha256").join(&digest), blob, 0o644);
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
    }
}

/// Files that every program needs: users, names of hosts, certificates, and folders to write to.
fn base_layer(release: &Release) -> anyhow::Result<Entries> {
    let mut entries = Entries::new();
    let user = IMAGE_USER;
    let passwd =
        format!("root:x:0:0:root:/:/nonexistent\ntambour:x:{user}:{user}:Tambour:/data:/nonexistent\n");
    add_file(&mut entries, "etc/passwd", passwd.into_bytes(), 0o644);
    add_file(&mut entries, "etc/group", format!("root:x:0:\ntambour:x:{user}:\n").into_bytes(), 0o644);
    add_file(&mut entries, "etc/nsswitch.conf", b"hosts: files dns\n".to_vec(), 0o644);
    let certificates = CERTIFICATES.iter().find_map(|path| std::fs::read(path).ok());
    let certificates =
        certificates.context("this machine has no CA certificates (package ca-certificates)")?;
    add_file(&mut entries, "etc/ssl/certs/ca-certificates.crt", certificates, 0o644);
    for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let path = Path::new("usr/share/doc/tambour").join(licence);
        add_file(&mut entries, path, release.source(licence)?, 0o644);
    }
    entries.insert("data".into(), Entry::Folder(0o700, user));
    entries.insert("tmp".into(), Entry::Folder(0o1777, 0));
    Ok(entries)
}

/// Libraries that the loader opens for a program, and the loader; none for a static program.
fn find_libraries(program: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd does not start")?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(!text.contains("not found"), "{text}");
    Ok(parse_libraries(&text))
}

/// Paths in the output of ldd. Those below a folder `lib` that is a link are kept as the loader asks for them.
fn parse_libraries(text: &str) -> Vec<PathBuf> {
    let words = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.filter(|word| !word.ends_with(':')).map(PathBuf::from).collect()
}

/// Configuration of the image.
fn configuration(release: &Release, differences: &[String]) -> anyhow::Result<Value> {
    let time = release.time()?;
    Ok(json!({
        "created": time,
        "architecture": release.architecture(),
        "os": "linux",
        "config": {
            "User": format!("{IMAGE_USER}:{IMAGE_USER}"),
            "ExposedPorts": {"8787/tcp": {}},
            "Env": [
                "PATH=/usr/bin",
                "TAMBOUR_LISTEN=0.0.0.0:8787",
                "TAMBOUR_DATA=/data",
            ],
            "Entrypoint": ["/usr/bin/tambour"],
            "Cmd": ["serve"],
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
            "StopSignal": "SIGTERM",
            // Not part of the OCI form, but read by Docker.
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/tambour", "health"],
                "Interval": 30 * SECOND, "Timeout": 5 * SECOND, "StartPeriod": 10 * SECOND, "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "tambour",
                "org.opencontainers.image.description":
                    "Structured replies of language models as one typed, repaired, checked stream of events",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.revision": release.commit,
                "org.opencontainers.image.created": time,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": differences},
        "history": [
            {"created": time, "created_by": "cargo xtask dist: libraries and certificates"},
            {"created": time, "created_by": "cargo xtask dist: program"},
        ],
    }))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::parse_libraries;

    #[test]
    fn libraries_are_where_the_loader_looks() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x2)\n\t/lib64/ld-linux-x86-64.so.2 (0x3)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"].map(PathBuf::from);
        assert_eq!(parse_libraries(text), expected);
        assert_eq!(parse_libraries("\tstatically linked\n"), Vec::<PathBuf>::new());
    }
}
