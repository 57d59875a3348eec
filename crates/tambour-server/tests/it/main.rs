//! The server over real sockets, against upstreams that behave badly and clients that come and go.

mod apart;
mod cancel;
mod client;
mod config;
mod crash;
mod ends;
mod events;
mod keys;
mod load;
mod messages;
mod mock;
#[cfg(target_os = "linux")]
mod nodelay;
mod openapi;
mod reask;
mod server;
mod settings;
mod upstream;
