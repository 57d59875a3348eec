//! Measurements of both servers.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::task::JoinSet;

use crate::client::{Client, Foreign, Whom};
use crate::process::Process;
use crate::table::{Table, Target, median, share};
use crate::upstream::reply;

/// Measurements to make, and their number.
pub(crate) struct Plan {
    parts: Vec<String>,
    rounds: usize,
    /// Divisor of the work of a round.
    less: usize,
}

const PARTS: [&str; 6] = ["cpu", "encoders", "first", "memory", "gone", "rounds"];

impl Plan {
    pub(crate) fn of(words: &[&str]) -> anyhow::Result<Plan> {
        let mut plan = Plan { parts: Vec::new(), rounds: 5, less: 1 };
        for word in words {
            match *word {
                "--quick" => (plan.rounds, plan.less) = (3, 4),
                part if PARTS.contains(&part) => plan.parts.push(part.to_owned()),
                other => anyhow::bail!("`{other}`: the parts are {}, or --quick", PARTS.join(", ")),
            }
        }
        Ok(plan)
    }

    fn has(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

/// Servers under comparison.
struct Pair {
    upstream: SocketAddr,
    bare: Process,
    tambour: Process,
}

impl Pair {
    /// Starts both, and warms them up with a first request.
    async fn start(program: &Path, upstream: SocketAddr, grace: bool) -> anyhow::Result<Pair> {
        let bare = Process::own(&["bare", &upstream.to_string()])?;
        let tambour = Process::tambour(program, upstream, grace)?;
        let pair = Pair { upstream, bare, tambour };
        for whom in [Whom::Bare, Whom::Tambour] {
            let mut client = pair.client(whom).await?;
            client.ask("burst-200", "thinkingml").await?;
            client.rest().await?;
        }
        Ok(pair)
    }

    fn of(&self, whom: Whom) -> &Process {
        if whom == Whom::Bare { &self.bare } else { &self.tambour }
    }

    async fn client(&self, whom: Whom) -> anyhow::Result<Client> {
        let address = match whom {
            Whom::Upstream => self.upstream,
            Whom::Bare => self.bare.address,
            Whom::Tambour | Whom::Foreign(_) => self.tambour.address,
        };
        Client::connect(whom, address).await
    }

    async fn clients(&self, whom: Whom, count: usize) -> anyhow::Result<Vec<Client>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.client(whom).await?);
        }
        Ok(clients)
    }
}

pub(crate) async fn run(program: &Path, plan: &Plan) -> anyhow::Result<()> {
    let upstream = Process::own(&["upstream"])?;
    let mut table = Table::default();
    correct(program, upstream.address).await?;
    if plan.has("cpu") {
        cpu(program, upstream.address, plan, &mut table).await?;
    }
    if plan.has("encoders") {
        encoders(program, upstream.address, plan, &mut table).await?;
    }
    if plan.has("first") {
        first(program, upstream.address, plan, &mut table).await?;
    }
    if plan.has("memory") {
        memory(program, upstream.address, &mut table).await?;
    }
    if plan.has("gone") {
        gone(program, upstream.address, &mut table).await?;
    }
    if plan.has("rounds") {
        crate::rounds::run(program, upstream.address, plan.less, &mut table).await?;
    }
    table.end();
    Ok(())
}

/// Checks that both return the text of the upstream.
async fn correct(program: &Path, upstream: SocketAddr) -> anyhow::Result<()> {
    let pair = Pair::start(program, upstream, true).await?;
    let mut client = pair.client(Whom::Bare).await?;
    client.ask("burst-500", "").await?;
    anyhow::ensure!(client.text(&["final_delta"]).await? == reply(500), "the bare mapper loses text");
    let mut client = pair.client(Whom::Tambour).await?;
    client.ask("burst-500", "thinkingml").await?;
    let said = reply(500);
    let answer =
        said.split_once("<final>").map_or("", |(_, answer)| answer.trim_end_matches("</final>").trim());
    anyhow::ensure!(client.text(&["final_delta"]).await? == answer, "the server loses text");
    Ok(())
}

/// Measures processor time of 1,000 chunks.
async fn cpu(program: &Path, upstream: SocketAddr, plan: &Plan, table: &mut Table) -> anyhow::Result<()> {
    struct Load {
        name: &'static str,
        pace: fn(usize) -> String,
        streams: usize,
        chunks: usize,
        target: Target,
    }
    let loads = [
        Load {
            name: "1,000 chunks in bursts, a write each, 64 streams",
            pace: |chunks| format!("burst-{chunks}"),
            streams: 64,
            chunks: 3000 / plan.less,
            target: Target::Ratio(1.0),
        },
        Load {
            name: "1,000 chunks in bursts, large writes, 64 streams",
            pace: |chunks| format!("blocks-{chunks}"),
            streams: 64,
            chunks: 3000 / plan.less,
            target: Target::Ratio(1.0),
        },
        Load {
            name: "1,000 chunks, 50 a second in 300 streams",
            pace: |chunks| format!("paced-{chunks}-20"),
            streams: 300,
            chunks: 400 / plan.less,
            target: Target::Ratio(1.4),
        },
    ];
    let pair = Pair::start(program, upstream, true).await?;
    for load in &loads {
        let model = (load.pace)(load.chunks);
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        // The first round warms up and does not count.
        for round in 0..=plan.rounds {
            for whom in [Whom::Bare, Whom::Tambour] {
                let clients = pair.clients(whom, load.streams).await?;
                tokio::time::sleep(Duration::from_millis(200)).await;
                let before = pair.of(whom).cpu()?;
                try_join_all(clients.into_iter().enumerate().map(|(place, mut client)| {
                    let model = &model;
                    async move {
                        // Spread the starts over some milliseconds.
                        tokio::time::sleep(Duration::from_millis(place as u64 % 20)).await;
                        client.ask(model, "thinkingml").await?;
                        client.rest().await
                    }
                }))
                .await?;
                // Work after the last byte counts too.
                tokio::time::sleep(Duration::from_millis(100)).await;
                let used = (pair.of(whom).cpu()? - before) * 1000.0;
                let each = used / (load.streams * load.chunks) as f64 * 1000.0;
                if round > 0 {
                    if whom == Whom::Bare { &mut bare } else { &mut ours }.push(each);
                }
            }
        }
        table.line(&format!("CPU of {}", load.name), "ms", Some(median(&bare)), median(&ours), &load.target);
    }
    Ok(())
}

/// Measures processor time of 1,000 chunks in the protocols of other clients, beside our own in the same
/// rounds.
async fn encoders(
    program: &Path,
    upstream: SocketAddr,
    plan: &Plan,
    table: &mut Table,
) -> anyhow::Result<()> {
    const STREAMS: usize = 64;
    let chunks = 3000 / plan.less;
    let model = format!("blocks-{chunks}");
    let pair = Pair::start(program, upstream, true).await?;
    let routes: Vec<Whom> = std::iter::once(Whom::Tambour).chain(Foreign::ALL.map(Whom::Foreign)).collect();
    let mut each: Vec<Vec<f64>> = vec![Vec::new(); routes.len()];
    // The first round warms up and does not count.
    for round in 0..=plan.rounds {
        for (whom, times) in routes.iter().zip(&mut each) {
            let clients = pair.clients(*whom, STREAMS).await?;
            let before = pair.tambour.cpu()?;
            let model = &model;
            try_join_all(clients.into_iter().map(|mut client| async move {
                client.ask(model, "thinkingml").await?;
                client.rest().await
            }))
            .await?;
            // Work after the last byte counts too.
            tokio::time::sleep(Duration::from_millis(200)).await;
            if round > 0 {
                times.push((pair.tambour.cpu()? - before) * 1e6 / (STREAMS * chunks) as f64);
            }
        }
    }
    let own = median(&each[0]);
    println!("\nCPU of 1,000 chunks in bursts: the protocol of the client (tambour) beside our own (bare)");
    for (foreign, times) in Foreign::ALL.iter().zip(&each[1..]) {
        table.line(foreign.name(), "ms", Some(own), median(times), &Target::Ratio(1.15));
    }
    Ok(())
}

/// Measures the time from the request to the first byte of the reply's text, beyond that of the upstream
/// itself.
async fn first(program: &Path, upstream: SocketAddr, plan: &Plan, table: &mut Table) -> anyhow::Result<()> {
    let pair = Pair::start(program, upstream, true).await?;
    for connections in [1, 64] {
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..=plan.rounds {
            for (whom, times) in [Whom::Upstream, Whom::Bare, Whom::Tambour].into_iter().zip(&mut times) {
                let clients = pair.clients(whom, connections).await?;
                let each = if connections == 1 { 200 } else { 24 } / plan.less;
                let asked = try_join_all(clients.into_iter().enumerate().map(|(place, client)| {
                    // Sixty-four connections send 640 requests a second, unsynchronised; one sends a hundred.
                    let pause = if connections == 1 { 5 } else { 50 };
                    firsts(client, whom, each, pause, place as u64)
                }))
                .await?;
                if round > 0 {
                    times.extend(asked.into_iter().flatten());
                }
            }
        }
        let [direct, bare, ours] = &times;
        let added = |times: &[f64], of: f64| share(times, of) - share(direct, of);
        let name = |what: &str| {
            let many = if connections == 1 { "connection" } else { "connections" };
            format!("{what}, {connections} {many}")
        };
        let figure = |of| (Some(added(bare, of)), added(ours, of));
        let (of_bare, of_ours) = figure(0.5);
        table.line(&name("added to first byte, median"), "ms", of_bare, of_ours, &Target::More(0.25));
        let (of_bare, of_ours) = figure(0.99);
        table.line(&name("the same, 99 of 100"), "ms", of_bare, of_ours, &Target::None);
        let late = |times: &[f64]| times.iter().filter(|time| **time >= 35.0).count() as f64;
        table.line(&name("replies 35 ms late or more"), "", Some(late(bare)), late(ours), &Target::Most(0.0));
    }
    Ok(())
}

/// Measures the milliseconds to the first text of `count` replies.
async fn firsts(
    mut client: Client,
    whom: Whom,
    count: usize,
    pause: u64,
    seed: u64,
) -> anyhow::Result<Vec<f64>> {
    let wanted: &[u8] = if whom == Whom::Upstream { b"\"content\":" } else { b"event: final_delta" };
    let (mut times, mut random) = (Vec::with_capacity(count), seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for _ in 0..count {
        if pause > 0 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            tokio::time::sleep(Duration::from_micros(pause * 1000 + random % (pause * 2000))).await;
        }
        let start = Instant::now();
        client.ask("burst-60", "plain").await?;
        times.push((client.until(wanted).await? - start).as_secs_f64() * 1000.0);
        client.rest().await?;
    }
    Ok(times)
}

/// Measures memory at rest, of a live stream, and with a reader that does not read.
async fn memory(program: &Path, upstream: SocketAddr, table: &mut Table) -> anyhow::Result<()> {
    let both = [Whom::Bare, Whom::Tambour];
    let pair = Pair::start(program, upstream, true).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = both.map(|whom| pair.of(whom).memory());
    let [bare, ours] = idle;
    table.line("memory at rest", "MiB", Some(bare? / 1024.0), ours? / 1024.0, &Target::Most(15.0));
    let (mut slopes, mut peaks) = (Vec::new(), Vec::new());
    for whom in both {
        let (mut held, mut at) = (JoinSet::new(), Vec::new());
        for more in [100, 500] {
            for mut client in pair.clients(whom, more).await? {
                // Four KiB at the pace of a model; the reply has not ended.
                client.ask("hold-1024-20", "thinkingml").await?;
                held.spawn(client.drain());
            }
            tokio::time::sleep(Duration::from_millis(1024 * 20)).await;
            at.push(settled(pair.of(whom)).await?);
        }
        slopes.push((at[1] - at[0]) / 500.0);
        peaks.push(at[1] / 1024.0);
    }
    table.line(
        "memory of a live stream, 4 KiB so far",
        "KiB",
        Some(slopes[0]),
        slopes[1],
        &Target::Ratio(1.5),
    );
    table.line("memory with 600 of them", "MiB", Some(peaks[0]), peaks[1], &Target::None);
    drop(pair);
    let pair = Pair::start(program, upstream, true).await?;
    let mut each = Vec::new();
    for whom in both {
        let before = pair.of(whom).memory()?;
        let address = pair.of(whom).address;
        let mut stalled = Vec::new();
        for _ in 0..50 {
            // More frames than the buffers of the system hold.
            let mut client = Client::narrow(whom, address).await?;
            client.ask("hold-8000-2", "thinkingml").await?;
            stalled.push(client);
        }
        tokio::time::sleep(Duration::from_secs(16)).await;
        each.push((settled(pair.of(whom)).await? - before) / 50.0);
    }
    table.line("memory of a reader that stalls", "KiB", Some(each[0]), each[1], &Target::Most(512.0));
    Ok(())
}

/// Memory of a process once it is idle.
async fn settled(process: &Process) -> anyhow::Result<f64> {
    for _ in 0..60 {
        let before = process.cpu()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if process.cpu()? - before < 0.02 {
            break;
        }
    }
    process.memory()
}

/// Counts upstream calls that continue after their clients have disconnected.
async fn gone(program: &Path, upstream: SocketAddr, table: &mut Table) -> anyhow::Result<()> {
    const CALLS: usize = 200;
    let pair = Pair::start(program, upstream, false).await?;
    let mut left = Vec::new();
    for whom in [Whom::Bare, Whom::Tambour] {
        let mut clients = pair.clients(whom, CALLS).await?;
        for client in &mut clients {
            client.ask("paced-100000-50", "thinkingml").await?;
            client.until(b"event: ").await?;
        }
        while running(upstream).await? < CALLS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(clients);
        tokio::time::sleep(Duration::from_millis(300)).await;
        left.push(running(upstream).await? as f64);
        while running(upstream).await? > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    table.line(
        "calls left of 200, 300 ms after their clients",
        "",
        Some(left[0]),
        left[1],
        &Target::Most(0.0),
    );
    Ok(())
}

async fn running(upstream: SocketAddr) -> anyhow::Result<usize> {
    crate::client::get(upstream, "/running").await?.trim().parse().map_err(Into::into)
}
