//! The processes that are measured: started, watched through /proc, ended with their owner.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// Says where a process listens, as the server does.
pub(crate) fn announce(address: SocketAddr) {
    println!("listening on http://{address}");
}

/// A process that listens.
pub(crate) struct Process {
    pub(crate) address: SocketAddr,
    child: Child,
    /// Removed with the process.
    folder: Option<PathBuf>,
}

impl Process {
    /// This program in another role.
    pub(crate) fn own(arguments: &[&str]) -> anyhow::Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments);
        Process::start(command, None)
    }

    /// The server with an empty database and its defaults; an upstream, and no grace where that is measured.
    pub(crate) fn tambour(program: &Path, upstream: SocketAddr, grace: bool) -> anyhow::Result<Process> {
        Process::serve(program, upstream, if grace { None } else { Some(("TAMBOUR_GRACE_MS", "0")) })
    }

    /// The same with a model for those who name none.
    pub(crate) fn tambour_with(program: &Path, upstream: SocketAddr, model: &str) -> anyhow::Result<Process> {
        Process::serve(program, upstream, Some(("TAMBOUR_MODEL", model)))
    }

    fn serve(program: &Path, upstream: SocketAddr, setting: Option<(&str, &str)>) -> anyhow::Result<Process> {
        use std::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("tambour-bench-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(program.canonicalize()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.join("data"));
        command.arg("--upstream").arg(format!("openai=http://{upstream}/v1")).current_dir(&folder);
        command.envs(setting);
        Process::start(command, Some(folder))
    }

    fn start(mut command: Command, folder: Option<PathBuf>) -> anyhow::Result<Process> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("{command:?}"))?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address =
            line.strip_prefix("listening on http://").context("it does not say where it listens")?;
        Ok(Process { address: address.trim().parse()?, child, folder })
    }

    /// Seconds of processor time so far, all threads, user and system.
    pub(crate) fn cpu(&self) -> anyhow::Result<f64> {
        let mut sum = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // Nanoseconds on a processor come first. Threads stay: a pool of fixed size does the work.
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split(' ').next().context("schedstat")?.parse::<u64>()?;
        }
        Ok(sum as f64 / 1e9)
    }

    /// KiB of memory that is neither a file nor shared.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("RssAnon")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
