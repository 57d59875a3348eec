//! Measured processes: started, observed through `/proc`, and killed when their handle is dropped.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// Prints the address that a process of this program listens on, in the form of Tambour's first line.
pub(crate) fn announce(address: SocketAddr) {
    println!("listening on http://{address}");
}

/// Process that listens on an address.
pub(crate) struct BenchProcess {
    pub(crate) address: SocketAddr,
    child: Child,
    /// Folder to remove after the process has ended.
    folder: Option<PathBuf>,
}

impl BenchProcess {
    /// Starts this program in another role.
    pub(crate) fn start_role(arguments: &[&str]) -> anyhow::Result<BenchProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        BenchProcess::start(command, None)
    }

    /// Starts Tambour with an empty database, default settings and the upstream. Without `has_grace` its
    /// grace period is 0: a call ends as soon as its client disconnects.
    pub(crate) fn start_tambour(
        program: &Path,
        upstream: SocketAddr,
        has_grace: bool,
    ) -> anyhow::Result<BenchProcess> {
        BenchProcess::start_server(
            program,
            upstream,
            if has_grace { None } else { Some(("TAMBOUR_GRACE_MS", "0")) },
        )
    }

    /// Starts Tambour like [`BenchProcess::start_tambour`], with a model for requests that name none.
    pub(crate) fn start_tambour_with_model(
        program: &Path,
        upstream: SocketAddr,
        model: &str,
    ) -> anyhow::Result<BenchProcess> {
        BenchProcess::start_server(program, upstream, Some(("TAMBOUR_MODEL", model)))
    }

    fn start_server(
        program: &Path,
        upstream: SocketAddr,
        variable: Option<(&str, &str)>,
    ) -> anyhow::Result<BenchProcess> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT_NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("tambour-bench-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(program.canonicalize()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data"));
        command.arg("--upstream").arg(format!("openai=http://{upstream}/v1")).current_dir(&folder);
        command.envs(variable);
        BenchProcess::start(command, Some(folder))
    }

    /// Starts a process and waits until it prints its address.
    fn start(mut command: Command, folder: Option<PathBuf>) -> anyhow::Result<BenchProcess> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address =
            line.strip_prefix("listening on http://").context("it does not say where it listens")?;
        Ok(BenchProcess { address: address.trim().parse()?, child, folder })
    }

    /// Processor time so far in seconds, all threads, user and system.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let mut sum = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // The first number is nanoseconds on a processor. No time is lost with ended threads, since pools
            // of fixed size do the work.
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split(' ').next().context("schedstat")?.parse::<u64>()?;
        }
        Ok(sum as f64 / 1e9)
    }

    /// Memory in KiB that is neither file-backed nor shared.
    pub(crate) fn memory_kib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("RssAnon")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for BenchProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
