//! The server over real sockets, against upstreams that behave badly and clients that come and go.

mod apart;
mod asking;
mod cancel;
mod client;
mod config;
mod crash;
#[cfg(unix)]
mod data_folder;
mod deletion;
mod dialogue_crash;
mod dialogues;
#[cfg(target_os = "linux")]
mod disk;
mod ends;
mod events;
mod every_route;
mod example;
mod fallback;
mod foreign;
mod heavy;
mod history;
mod imports;
mod journal;
mod keys;
mod kinds;
mod kinds_asked;
mod listings;
mod load;
mod log;
mod mcp;
mod mcp_kit;
#[cfg(unix)]
mod mcp_stdio;
mod messages;
mod metrics;
mod mock;
#[cfg(target_os = "linux")]
mod native;
mod nodelay;
mod once;
mod openapi;
mod owners;
mod quotas;
mod readme;
mod reask;
mod scripts;
mod server;
mod servers;
mod settings;
mod slow;
mod state;
mod state_crash;
mod structured;
mod tool_clients;
mod tool_crash;
mod tool_hooks;
mod tool_kit;
mod tool_loop;
mod tools;
mod traces;
mod upgrade;
mod upstream;
mod wires;
