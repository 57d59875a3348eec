//! Small frames leave at once: Nagle's algorithm is off on both sides of the server. The options of its own sockets are
//! read, so no clock is needed.

use std::net::{SocketAddr, TcpStream};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use serde_json::json;

use crate::mock::{Gate, MockServer, Step, delta_step};
use crate::server::TestServer;

/// Own address, peer and TCP_NODELAY of each TCP connection of this process; `None` where the system does not show them.
fn tcp_connections() -> Option<Vec<(SocketAddr, SocketAddr, bool)>> {
    let pidfd = pidfd_open(getpid(), PidfdFlags::empty()).ok()?;
    let mut sockets = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").ok()? {
        let entry = entry.ok()?;
        let socket = std::fs::read_link(entry.path())
            .is_ok_and(|target| target.to_string_lossy().starts_with("socket:"));
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()).filter(|_| socket)
        else {
            continue;
        };
        let copy = match pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()) {
            Ok(copy) => TcpStream::from(copy),
            // Another test has closed it.
            Err(rustix::io::Errno::BADF) => continue,
            Err(_) => return None,
        };
        // The rest are listeners, or no TCP sockets.
        if let (Ok(local), Ok(peer), Ok(nodelay)) = (copy.local_addr(), copy.peer_addr(), copy.nodelay()) {
            sockets.push((local, peer, nodelay));
        }
    }
    Some(sockets)
}

#[tokio::test]
async fn accepted_and_upstream_sockets_do_not_wait_for_more() {
    let gate = Gate::new();
    let mock = MockServer::start(vec![vec![delta_step("Four. "), Step::Wait(gate.clone())]]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let mut stream = server.open_stream(&request).await;
    stream.read_until("final_delta").await;
    let client = stream.socket.local_addr().unwrap();
    let Some(connections) = tcp_connections() else {
        eprintln!("left out: this system does not let a process look at its sockets");
        return;
    };
    let accepted_socket =
        connections.iter().find(|(_, peer, _)| *peer == client).expect("the accepted socket");
    assert!(accepted_socket.2, "TCP_NODELAY on the accepted socket");
    let upstream =
        connections.iter().find(|(_, peer, _)| *peer == mock.address).expect("the upstream socket");
    assert!(upstream.2, "TCP_NODELAY on the socket to the upstream");
}
