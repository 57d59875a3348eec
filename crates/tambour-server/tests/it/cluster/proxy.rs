//! Proxy of TCP connections, which a test cuts, silences and heals.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Treatment of the connections of a proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It forwards them.
    None,
    /// It resets them, new ones at once.
    Cut,
    /// It keeps them open and forwards nothing.
    Silent,
}

#[derive(Clone, Copy)]
struct ProxyState {
    fault: Fault,
    /// Number of silences so far.
    silences: u64,
    /// Connections that began before this silence are dead: both ends believe that they are open.
    dead_before: u64,
}

impl ProxyState {
    /// Returns `true` if a connection is forwarded that began after so many silences.
    fn forwards(&self, birth: u64) -> bool {
        self.fault == Fault::None && birth >= self.dead_before
    }
}

/// Forwards connections to a port that can be changed, as the address of a database does at a failover.
pub(super) struct Proxy {
    pub(super) port: u16,
    target: Arc<AtomicU16>,
    state: watch::Sender<ProxyState>,
}

impl Proxy {
    pub(super) async fn start(target: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Arc::new(AtomicU16::new(target));
        let state = watch::Sender::new(ProxyState { fault: Fault::None, silences: 0, dead_before: 0 });
        let proxy = Proxy { port, target: target.clone(), state: state.clone() };
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, target.clone(), state.subscribe()));
            }
        });
        proxy
    }

    /// Returns the URL of a database through this proxy.
    pub(super) fn database_url(&self, url: &str) -> String {
        let port = self.target.load(Ordering::Relaxed);
        url.replace(&format!(":{port}/"), &format!(":{}/", self.port))
    }

    /// Forwards new connections to another port.
    pub(super) fn set_target(&self, port: u16) {
        self.target.store(port, Ordering::Relaxed);
    }

    /// Resets all connections, and new ones at once.
    pub(super) fn cut(&self) {
        self.state.send_modify(|state| state.fault = Fault::Cut);
    }

    /// Keeps all connections open, accepts new ones, and forwards nothing.
    pub(super) fn silence(&self) {
        self.state.send_modify(|state| {
            state.fault = Fault::Silent;
            state.silences += 1;
        });
    }

    /// Forwards again. Connections from before a silence go on, with what was sent meanwhile.
    pub(super) fn heal(&self) {
        self.state.send_modify(|state| state.fault = Fault::None);
    }

    /// Forwards new connections. Those from before a silence stay silent for ever, as if a firewall had forgotten them.
    pub(super) fn heal_for_new(&self) {
        self.state.send_modify(|state| {
            state.fault = Fault::None;
            state.dead_before = state.silences;
        });
    }
}

/// Carries one connection until it ends or is cut.
async fn carry(mut client: TcpStream, target: Arc<AtomicU16>, mut state: watch::Receiver<ProxyState>) {
    let birth = state.borrow().silences;
    let mut cut_state = state.clone();
    let cut = async move {
        let _ = cut_state.wait_for(|state| state.fault == Fault::Cut).await;
    };
    let mut server = None;
    let carrying = async {
        let _ = state.wait_for(|state| state.forwards(birth)).await;
        let Ok(stream) = TcpStream::connect(("127.0.0.1", target.load(Ordering::Relaxed))).await else {
            return;
        };
        let _ = (client.set_nodelay(true), stream.set_nodelay(true));
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.insert(stream).split();
        tokio::join!(
            pump(from_client, to_server, birth, state.clone()),
            pump(from_server, to_client, birth, state.clone())
        );
    };
    let is_cut = tokio::select! {
        () = carrying => false,
        () = cut => true,
    };
    if is_cut {
        let _ = client.set_zero_linger();
        if let Some(server) = server {
            let _ = server.set_zero_linger();
        }
    }
}

/// Copies bytes in one direction while the proxy forwards, until their end.
async fn pump(
    mut reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    birth: u64,
    mut state: watch::Receiver<ProxyState>,
) {
    let mut buffer = vec![0; 16 << 10];
    let mut stop_state = state.clone();
    while state.wait_for(|state| state.forwards(birth)).await.is_ok() {
        let length = tokio::select! {
            length = reader.read(&mut buffer) => length.unwrap_or(0),
            _ = stop_state.wait_for(|state| !state.forwards(birth)) => continue,
        };
        if length == 0 || writer.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    let _ = writer.shutdown().await;
}
