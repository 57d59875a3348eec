//! Measured processes: started, observed through `/proc`, and killed when their handle is dropped.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// Prints the address that a process of this program listens on, in the format of the first line
/// that Tambour prints.
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
    /// Starts this program in another role, given by its arguments.
    pub(crate) fn start_role(arguments: &[&str]) -> anyhow::Result<BenchProcess> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        BenchProcess::start(command, None)
    }

    /// Starts Tambour with an empty database, default settings and the upstream.
    pub(crate) fn start_tambour(program: &Path, upstream: SocketAddr) -> anyhow::Result<BenchProcess> {
        BenchProcess::start_server(program, upstream, None)
    }

    /// Starts Tambour with a grace period of 0, so that a call ends as soon as its client disconnects.
    pub(crate) fn start_tambour_without_grace(
        program: &Path,
        upstream: SocketAddr,
    ) -> anyhow::Result<BenchProcess> {
        BenchProcess::start_server(program, upstream, Some(("TAMBOUR_GRACE_MS", "0")))
    }

    /// Starts Tambour with a default model, for requests that name none.
    pub(crate) fn start_tambour_with_model(
        program: &Path,
        upstream: SocketAddr,
        model: &str,
    ) -> anyhow::Result<BenchProcess> {
        BenchProcess::start_server(program, upstream, Some(("TAMBOUR_MODEL", model)))
    }

    /// Starts Tambour with `variable` in its environment.
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
        let address = line.strip_prefix("listening on http://").context("the first line has no address")?;
        Ok(BenchProcess { address: address.trim().parse()?, child, folder })
    }

    /// Processor time so far in seconds: of all threads, in user and system mode.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let mut sum = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // The first number of the file is the time that the thread has run, in nanoseconds. Threads that
            // have ended are missing, but pools of fixed size do the work.
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split(' ').next().context("`schedstat` is empty")?.parse::<u64>()?;
        }
        Ok(sum as f64 / 1e9)
    }

    /// Memory in KiB that is neither file-backed nor shared.
    pub(crate) fn memory_kib(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"))
            .context("the status has no `RssAnon`")?;
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
