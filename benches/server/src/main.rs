//! Comparison of Tambour with the bare mapper, a server that only turns frames of a model's reply into
//! events: `cargo xtask bench server` builds and runs it.
//!
//! Each of four processes has its own counts of time and memory: the upstream, the bare mapper, Tambour as a
//! user runs it, and the clients, which print the table. All but Tambour are this program in different roles.

mod bare;
mod client;
mod measure;
mod process;
mod rounds;
mod table;
mod upstream;

use std::path::PathBuf;

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match words.as_slice() {
        ["upstream"] => runtime.block_on(upstream::serve_upstream()),
        ["bare", upstream] => runtime.block_on(bare::serve_bare((*upstream).to_owned())),
        ["run", tambour, plan_words @ ..] => {
            runtime.block_on(measure::run(&PathBuf::from(tambour), &measure::BenchPlan::parse(plan_words)?))
        }
        _ => Err(anyhow::anyhow!("bench-server upstream | bare ADDRESS | run TAMBOUR [--quick] [PART..]")),
    }
    .context("the benchmark of the server failed")
}
