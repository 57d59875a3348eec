//! Server that runs for a check, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context;

/// Longest pause of a response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum length in bytes of a response.
const MAX_RESPONSE: u64 = 16 << 20;

/// Server on this machine; killed when dropped.
pub(crate) struct LocalServer {
    child: Child,
    /// Address with the port.
    pub(crate) address: String,
}

impl LocalServer {
    /// Starts the demo server of a program on a free port, with its data in `folder`.
    pub(crate) fn start(program: &Path, folder: &Path) -> anyhow::Result<LocalServer> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--upstream", "demo", "--data"]);
        command.arg(folder.join("data")).current_dir(folder).env("TAMBOUR_LOG", "error");
        LocalServer::start_command(command)
    }

    /// Runs a command that starts a server, and waits for the first line of its output.
    pub(crate) fn start_command(mut command: Command) -> anyhow::Result<LocalServer> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{command:?} does not start"))?;
        let mut line = String::new();
        let output = child.stdout.take().context("standard output is a pipe")?;
        // A command that fails closes its output, which ends this.
        BufReader::new(output).read_line(&mut line)?;
        let mut server = LocalServer { child, address: String::new() };
        let address = line.trim().strip_prefix("listening on http://");
        server.address = address.with_context(|| format!("{command:?} says {line:?}"))?.to_owned();
        Ok(server)
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(mut self) -> anyhow::Result<ExitStatus> {
        Ok(self.child.wait()?)
    }

    /// Returns the body of the response to a GET request, which must be 200.
    pub(crate) fn get(&self, path: &str) -> anyhow::Result<String> {
        let mut socket = TcpStream::connect(&self.address)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        write!(socket, "GET {path} HTTP/1.0\r\nhost: {}\r\n\r\n", self.address)?;
        let mut response = String::new();
        socket.take(MAX_RESPONSE).read_to_string(&mut response)?;
        let (head, body) = response.split_once("\r\n\r\n").context("the response has no body")?;
        anyhow::ensure!(head.split(' ').nth(1) == Some("200"), "{path}: {head}\n{body}");
        Ok(body.to_owned())
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
