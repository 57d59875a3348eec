//! The server over real sockets, against upstreams that misbehave and clients that come and go.

mod aliases;
mod asking;
mod cancel;
mod child_process;
mod client;
#[cfg(unix)]
mod cluster;
mod config;
mod constrained;
mod contracts;
mod crash;
mod damage;
#[cfg(unix)]
mod data_folder;
mod deletion;
mod dialogue_crash;
mod dialogues;
#[cfg(target_os = "linux")]
mod disk;
mod durable_streams;
mod ends;
mod events;
mod every_route;
mod example;
mod fair;
mod fallback;
mod figures;
mod floods;
mod foreign;
mod forks;
mod heavy;
mod history;
mod imports;
mod journal;
mod keys;
mod kinds;
mod kinds_asked;
mod layers;
mod listings;
mod load;
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
#[cfg(unix)]
mod postgres;
mod promises;
mod quotas;
mod readme;
mod reask;
mod responses;
mod runs;
mod schemas;
mod scripts;
mod server;
mod server_process;
mod servers;
mod services;
mod settings;
mod siege;
mod slow;
mod state;
mod state_crash;
mod structured;
mod sweeping;
mod tool_clients;
mod tool_crash;
mod tool_hooks;
mod tool_kit;
mod tool_loop;
mod tools;
mod traces;
mod turns;
mod upgrade;
mod upstream;
mod useless;
mod wires;
