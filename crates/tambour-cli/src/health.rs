//! `tambour health`: state of a running server, for a container that has neither a shell nor a client.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Result;

use crate::{CommandOutcome, output};

/// Longest time for the connection, and for each read of the response.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum length in bytes that is read of a response.
const MAX_RESPONSE: u64 = 4096;

/// Ask a server on this machine whether it lives; exit code 0 if it does, else 1
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tambour health --help")]
pub(crate) struct HealthCommand {
    /// Address that the server listens on; an unspecified one stands for this machine
    #[arg(value_name = "ADDR", env = "TAMBOUR_LISTEN", default_value = "127.0.0.1:8787")]
    address: SocketAddr,
    /// Ask whether it accepts work (`/readyz`), not only whether it lives (`/healthz`)
    #[arg(long)]
    ready: bool,
}

pub(crate) fn run(args: &HealthCommand) -> Result<CommandOutcome> {
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let address = local_address(args.address);
    match read_status(address, path) {
        Ok(200) => {
            println!("ok");
            Ok(CommandOutcome::Success)
        }
        Ok(status) => {
            output::print_error(&format!("http://{address}{path} answered {status}"));
            Ok(CommandOutcome::Failed)
        }
        Err(error) => {
            output::print_error(&format!("http://{address}{path}: {error}"));
            Ok(CommandOutcome::Failed)
        }
    }
}

/// Replaces an unspecified address with the loopback address of the same family.
fn local_address(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

/// Returns the status code of the response to a GET request.
fn read_status(address: SocketAddr, path: &str) -> std::io::Result<u16> {
    let mut socket = TcpStream::connect_timeout(&address, TIMEOUT)?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    write!(socket, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut response = Vec::new();
    socket.take(MAX_RESPONSE).read_to_end(&mut response)?;
    let status = response.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.get(..3));
    status
        .and_then(|status| std::str::from_utf8(status).ok()?.parse().ok())
        .ok_or_else(|| std::io::Error::other("the response is not HTTP"))
}
