//! Measurements of the bare mapper (the baseline, [`crate::bare`]) and of Tambour, each with the same load.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use tokio::task::JoinSet;

use crate::client::{BenchClient, ClientProtocol, TargetServer};
use crate::process::BenchProcess;
use crate::table::{FigureTable, FigureTarget, median, quantile};
use crate::upstream::build_reply;

/// Choice of measurements, and their effort.
pub(crate) struct BenchPlan {
    /// Names of the measurements, from [`PARTS`]; empty for all.
    parts: Vec<String>,
    /// Number of repetitions of a measurement, after one that does not count.
    repetitions: usize,
    /// Divisor of the numbers of chunks, requests and dialogues; more than 1 for a quick comparison.
    divisor: usize,
}

/// Names of the measurements, in the order of [`run`]. `first` measures the delay of the first text, `gone`
/// the calls that continue without a client, `rounds` the rounds of a dialogue.
const PARTS: [&str; 6] = ["cpu", "encoders", "first", "memory", "gone", "rounds"];

impl BenchPlan {
    /// Parses names of measurements and `--quick`.
    pub(crate) fn parse(words: &[&str]) -> anyhow::Result<BenchPlan> {
        let mut plan = BenchPlan { parts: Vec::new(), repetitions: 5, divisor: 1 };
        for word in words {
            match *word {
                "--quick" => (plan.repetitions, plan.divisor) = (3, 4),
                part if PARTS.contains(&part) => plan.parts.push(part.to_owned()),
                other => anyhow::bail!("`{other}`: the parts are {}, or --quick", PARTS.join(", ")),
            }
        }
        Ok(plan)
    }

    fn has_part(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|chosen_part| chosen_part == part)
    }
}

/// Servers under comparison.
struct ServerPair {
    upstream: SocketAddr,
    bare: BenchProcess,
    tambour: BenchProcess,
}

impl ServerPair {
    /// Starts both servers; `program` is the Tambour binary.
    async fn start(program: &Path, upstream: SocketAddr) -> anyhow::Result<ServerPair> {
        ServerPair::with_tambour(BenchProcess::start_tambour(program, upstream)?, upstream).await
    }

    /// Starts the bare mapper for comparison with a running Tambour, and warms both up with a first request.
    async fn with_tambour(tambour: BenchProcess, upstream: SocketAddr) -> anyhow::Result<ServerPair> {
        let bare = BenchProcess::start_role(&["bare", &upstream.to_string()])?;
        let pair = ServerPair { upstream, bare, tambour };
        for target_server in [TargetServer::Bare, TargetServer::Tambour] {
            let mut client = pair.connect(target_server).await?;
            client.send_request("burst-200", "thinkingml").await?;
            client.read_to_end().await?;
        }
        Ok(pair)
    }

    /// Process of a server under comparison.
    fn process(&self, target_server: TargetServer) -> &BenchProcess {
        if target_server == TargetServer::Bare { &self.bare } else { &self.tambour }
    }

    async fn connect(&self, target_server: TargetServer) -> anyhow::Result<BenchClient> {
        let address = match target_server {
            TargetServer::Upstream => self.upstream,
            TargetServer::Bare => self.bare.address,
            TargetServer::Tambour | TargetServer::Protocol(_) => self.tambour.address,
        };
        BenchClient::connect(target_server, address).await
    }

    async fn connect_many(
        &self,
        target_server: TargetServer,
        count: usize,
    ) -> anyhow::Result<Vec<BenchClient>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            clients.push(self.connect(target_server).await?);
        }
        Ok(clients)
    }
}

/// Runs the chosen measurements and prints their figures; `program` is the Tambour binary.
pub(crate) async fn run(program: &Path, plan: &BenchPlan) -> anyhow::Result<()> {
    let upstream = BenchProcess::start_role(&["upstream"])?;
    let mut table = FigureTable::default();
    check_texts(program, upstream.address).await?;
    if plan.has_part("cpu") {
        measure_cpu(program, upstream.address, plan, &mut table).await?;
    }
    if plan.has_part("encoders") {
        measure_encoders(program, upstream.address, plan, &mut table).await?;
    }
    if plan.has_part("first") {
        measure_first_text(program, upstream.address, plan, &mut table).await?;
    }
    if plan.has_part("memory") {
        measure_memory(program, upstream.address, &mut table).await?;
    }
    if plan.has_part("gone") {
        measure_abandoned_calls(program, upstream.address, &mut table).await?;
    }
    if plan.has_part("rounds") {
        crate::rounds::run(program, upstream.address, plan.divisor, &mut table).await?;
    }
    table.print_end();
    Ok(())
}

/// Checks that both servers return the text of the upstream.
async fn check_texts(program: &Path, upstream: SocketAddr) -> anyhow::Result<()> {
    let pair = ServerPair::start(program, upstream).await?;
    let mut client = pair.connect(TargetServer::Bare).await?;
    client.send_request("burst-500", "").await?;
    anyhow::ensure!(
        client.read_text(&["final_delta"]).await? == build_reply(500),
        "the bare mapper loses text"
    );
    let mut client = pair.connect(TargetServer::Tambour).await?;
    client.send_request("burst-500", "thinkingml").await?;
    let reply = build_reply(500);
    let answer =
        reply.split_once("<final>").map_or("", |(_, answer)| answer.trim_end_matches("</final>").trim());
    anyhow::ensure!(client.read_text(&["final_delta"]).await? == answer, "the server loses text");
    Ok(())
}

/// Measures processor time for 1,000 chunks, in milliseconds.
async fn measure_cpu(
    program: &Path,
    upstream: SocketAddr,
    plan: &BenchPlan,
    table: &mut FigureTable,
) -> anyhow::Result<()> {
    struct Load {
        name: &'static str,
        /// Name of the upstream's model for a number of chunks.
        model: fn(usize) -> String,
        /// Number of streams at the same time.
        streams: usize,
        /// Number of chunks in a stream.
        chunks: usize,
        target: FigureTarget,
    }
    let loads = [
        Load {
            name: "1,000 chunks in bursts, a write each, 64 streams",
            model: |chunks| format!("burst-{chunks}"),
            streams: 64,
            chunks: 3000 / plan.divisor,
            target: FigureTarget::Ratio(1.0),
        },
        Load {
            name: "1,000 chunks in bursts, large writes, 64 streams",
            model: |chunks| format!("blocks-{chunks}"),
            streams: 64,
            chunks: 3000 / plan.divisor,
            target: FigureTarget::Ratio(1.0),
        },
        Load {
            name: "1,000 chunks, 50 a second in 300 streams",
            model: |chunks| format!("paced-{chunks}-20"),
            streams: 300,
            chunks: 400 / plan.divisor,
            target: FigureTarget::Ratio(1.4),
        },
    ];
    let pair = ServerPair::start(program, upstream).await?;
    for load in &loads {
        let model = (load.model)(load.chunks);
        let (mut bare_times, mut tambour_times) = (Vec::new(), Vec::new());
        // The first repetition warms up and does not count.
        for repetition in 0..=plan.repetitions {
            for target_server in [TargetServer::Bare, TargetServer::Tambour] {
                let clients = pair.connect_many(target_server, load.streams).await?;
                tokio::time::sleep(Duration::from_millis(200)).await;
                let cpu_before = pair.process(target_server).cpu_seconds()?;
                try_join_all(clients.into_iter().enumerate().map(|(index, mut client)| {
                    let model = &model;
                    async move {
                        // Spread the starts over some milliseconds.
                        tokio::time::sleep(Duration::from_millis(index as u64 % 20)).await;
                        client.send_request(model, "thinkingml").await?;
                        client.read_to_end().await
                    }
                }))
                .await?;
                // Work after the last byte counts too.
                tokio::time::sleep(Duration::from_millis(100)).await;
                let used_ms = (pair.process(target_server).cpu_seconds()? - cpu_before) * 1000.0;
                let ms_per_1000_chunks = used_ms / (load.streams * load.chunks) as f64 * 1000.0;
                if repetition > 0 {
                    let is_bare = target_server == TargetServer::Bare;
                    let times = if is_bare { &mut bare_times } else { &mut tambour_times };
                    times.push(ms_per_1000_chunks);
                }
            }
        }
        table.print_line(
            &format!("CPU of {}", load.name),
            "ms",
            Some(median(&bare_times)),
            median(&tambour_times),
            &load.target,
        );
    }
    Ok(())
}

/// Measures processor time for 1,000 chunks in each foreign protocol, in comparison with Tambour's own
/// protocol in the same repetitions.
async fn measure_encoders(
    program: &Path,
    upstream: SocketAddr,
    plan: &BenchPlan,
    table: &mut FigureTable,
) -> anyhow::Result<()> {
    const STREAMS: usize = 64;
    let chunks = 3000 / plan.divisor;
    let model = format!("blocks-{chunks}");
    let pair = ServerPair::start(program, upstream).await?;
    let routes: Vec<TargetServer> = std::iter::once(TargetServer::Tambour)
        .chain(ClientProtocol::ALL.map(TargetServer::Protocol))
        .collect();
    let mut times_by_route: Vec<Vec<f64>> = vec![Vec::new(); routes.len()];
    // The first repetition warms up and does not count.
    for repetition in 0..=plan.repetitions {
        for (route, times) in routes.iter().zip(&mut times_by_route) {
            let clients = pair.connect_many(*route, STREAMS).await?;
            let cpu_before = pair.tambour.cpu_seconds()?;
            let model = &model;
            try_join_all(clients.into_iter().map(|mut client| async move {
                client.send_request(model, "thinkingml").await?;
                client.read_to_end().await
            }))
            .await?;
            // Work after the last byte counts too.
            tokio::time::sleep(Duration::from_millis(200)).await;
            if repetition > 0 {
                // Milliseconds for 1,000 chunks.
                times.push((pair.tambour.cpu_seconds()? - cpu_before) * 1e6 / (STREAMS * chunks) as f64);
            }
        }
    }
    let own_median = median(&times_by_route[0]);
    println!(
        "\nCPU of 1,000 chunks in bursts: the protocol of the client (tambour) compared with our own (bare)"
    );
    for (protocol, times) in ClientProtocol::ALL.iter().zip(&times_by_route[1..]) {
        table.print_line(protocol.name(), "ms", Some(own_median), median(times), &FigureTarget::Ratio(1.15));
    }
    Ok(())
}

/// Measures the delay that each server adds: the time from a request to the first text of its reply, minus
/// the same time of the upstream without a server.
async fn measure_first_text(
    program: &Path,
    upstream: SocketAddr,
    plan: &BenchPlan,
    table: &mut FigureTable,
) -> anyhow::Result<()> {
    let pair = ServerPair::start(program, upstream).await?;
    for connections in [1, 64] {
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        // The first repetition warms up and does not count.
        for repetition in 0..=plan.repetitions {
            for (target_server, times) in [TargetServer::Upstream, TargetServer::Bare, TargetServer::Tambour]
                .into_iter()
                .zip(&mut times)
            {
                let clients = pair.connect_many(target_server, connections).await?;
                let requests_each = if connections == 1 { 200 } else { 24 } / plan.divisor;
                let measurements = try_join_all(clients.into_iter().enumerate().map(|(index, client)| {
                    // Requests are sent at random times: 640 a second by 64 connections, 100 by a single one.
                    let min_pause_ms = if connections == 1 { 5 } else { 50 };
                    first_text_times(client, target_server, requests_each, min_pause_ms, index as u64)
                }))
                .await?;
                if repetition > 0 {
                    times.extend(measurements.into_iter().flatten());
                }
            }
        }
        let [upstream_times, bare_times, tambour_times] = &times;
        let added_time = |times: &[f64], share: f64| quantile(times, share) - quantile(upstream_times, share);
        let name = |label: &str| {
            let unit = if connections == 1 { "connection" } else { "connections" };
            format!("{label}, {connections} {unit}")
        };
        let added_times = |share| (Some(added_time(bare_times, share)), added_time(tambour_times, share));
        let (bare_added, tambour_added) = added_times(0.5);
        table.print_line(
            &name("added to first byte, median"),
            "ms",
            bare_added,
            tambour_added,
            &FigureTarget::AtMostMore(0.25),
        );
        let (bare_added, tambour_added) = added_times(0.99);
        table.print_line(&name("the same, 99 of 100"), "ms", bare_added, tambour_added, &FigureTarget::None);
        let late_count = |times: &[f64]| times.iter().filter(|time| **time >= 35.0).count() as f64;
        table.print_line(
            &name("replies 35 ms late or more"),
            "",
            Some(late_count(bare_times)),
            late_count(tambour_times),
            &FigureTarget::AtMost(0.0),
        );
    }
    Ok(())
}

/// Measures the milliseconds to the first text of `count` replies. Pauses before a request are between one
/// and three times `min_pause_ms`, from a generator seeded with `seed`.
async fn first_text_times(
    mut client: BenchClient,
    target_server: TargetServer,
    count: usize,
    min_pause_ms: u64,
    seed: u64,
) -> anyhow::Result<Vec<f64>> {
    let marker: &[u8] =
        if target_server == TargetServer::Upstream { b"\"content\":" } else { b"event: final_delta" };
    let mut times = Vec::with_capacity(count);
    let mut random_bits = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for _ in 0..count {
        if min_pause_ms > 0 {
            // Xorshift is random enough for pauses.
            random_bits ^= random_bits << 13;
            random_bits ^= random_bits >> 7;
            random_bits ^= random_bits << 17;
            let pause_us = min_pause_ms * 1000 + random_bits % (min_pause_ms * 2000);
            tokio::time::sleep(Duration::from_micros(pause_us)).await;
        }
        let start = Instant::now();
        client.send_request("burst-60", "plain").await?;
        times.push((client.read_until(marker).await? - start).as_secs_f64() * 1000.0);
        client.read_to_end().await?;
    }
    Ok(times)
}

/// Measures the memory of an idle server, of a live stream and of a reader that stalls.
async fn measure_memory(program: &Path, upstream: SocketAddr, table: &mut FigureTable) -> anyhow::Result<()> {
    let servers = [TargetServer::Bare, TargetServer::Tambour];
    let pair = ServerPair::start(program, upstream).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle = servers.map(|target_server| pair.process(target_server).memory_kib());
    let [bare_memory, tambour_memory] = idle;
    table.print_line(
        "memory at rest",
        "MiB",
        Some(bare_memory? / 1024.0),
        tambour_memory? / 1024.0,
        &FigureTarget::AtMost(15.0),
    );
    // For each server: KiB of one stream, and MiB with all streams.
    let (mut kib_per_stream, mut peaks_mib) = (Vec::new(), Vec::new());
    for target_server in servers {
        let (mut open_streams, mut memory_kib) = (JoinSet::new(), Vec::new());
        // The second group of streams is added to the first.
        for stream_count in [100, 500] {
            for mut client in pair.connect_many(target_server, stream_count).await? {
                // Four KiB of text at the pace of a model, in a reply that does not end.
                client.send_request("hold-1024-20", "thinkingml").await?;
                open_streams.spawn(client.drain());
            }
            tokio::time::sleep(Duration::from_millis(1024 * 20)).await;
            memory_kib.push(settled_memory(pair.process(target_server)).await?);
        }
        kib_per_stream.push((memory_kib[1] - memory_kib[0]) / 500.0);
        peaks_mib.push(memory_kib[1] / 1024.0);
    }
    table.print_line(
        "memory of a live stream, 4 KiB so far",
        "KiB",
        Some(kib_per_stream[0]),
        kib_per_stream[1],
        &FigureTarget::Ratio(1.5),
    );
    table.print_line("memory with 600 of them", "MiB", Some(peaks_mib[0]), peaks_mib[1], &FigureTarget::None);
    drop(pair);
    let pair = ServerPair::start(program, upstream).await?;
    let mut kib_per_reader = Vec::new();
    for target_server in servers {
        let memory_before = pair.process(target_server).memory_kib()?;
        let address = pair.process(target_server).address;
        let mut stalled_readers = Vec::new();
        for _ in 0..50 {
            // The reply has more frames than the buffers of the system hold.
            let mut client = BenchClient::connect_narrow(target_server, address).await?;
            client.send_request("hold-8000-2", "thinkingml").await?;
            stalled_readers.push(client);
        }
        // Wait until the upstream has sent 8,000 chunks, one every 2 ms.
        tokio::time::sleep(Duration::from_secs(16)).await;
        let memory_after = settled_memory(pair.process(target_server)).await?;
        kib_per_reader.push((memory_after - memory_before) / 50.0);
    }
    table.print_line(
        "memory of a reader that stalls",
        "KiB",
        Some(kib_per_reader[0]),
        kib_per_reader[1],
        &FigureTarget::AtMost(512.0),
    );
    Ok(())
}

/// Memory of a process in KiB once it is idle, or after a minute.
async fn settled_memory(process: &BenchProcess) -> anyhow::Result<f64> {
    for _ in 0..60 {
        let cpu_before = process.cpu_seconds()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        if process.cpu_seconds()? - cpu_before < 0.02 {
            break;
        }
    }
    process.memory_kib()
}

/// Counts upstream calls that continue after their clients have disconnected.
async fn measure_abandoned_calls(
    program: &Path,
    upstream: SocketAddr,
    table: &mut FigureTable,
) -> anyhow::Result<()> {
    const CALLS: usize = 200;
    let tambour = BenchProcess::start_tambour_without_grace(program, upstream)?;
    let pair = ServerPair::with_tambour(tambour, upstream).await?;
    let mut calls_left = Vec::new();
    for target_server in [TargetServer::Bare, TargetServer::Tambour] {
        let mut clients = pair.connect_many(target_server, CALLS).await?;
        for client in &mut clients {
            client.send_request("paced-100000-50", "thinkingml").await?;
            client.read_until(b"event: ").await?;
        }
        while running_calls(upstream).await? < CALLS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        drop(clients);
        tokio::time::sleep(Duration::from_millis(300)).await;
        calls_left.push(running_calls(upstream).await? as f64);
        while running_calls(upstream).await? > 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    table.print_line(
        "calls still running, 300 ms after 200 disconnects",
        "",
        Some(calls_left[0]),
        calls_left[1],
        &FigureTarget::AtMost(0.0),
    );
    Ok(())
}

/// Number of calls that the upstream has in progress.
async fn running_calls(upstream: SocketAddr) -> anyhow::Result<usize> {
    crate::client::fetch(upstream, "/running").await?.trim().parse().map_err(Into::into)
}
