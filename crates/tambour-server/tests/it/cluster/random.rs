//! Random faults while many readers look on, and a checker of what they have seen.
//!
//! `CLUSTER_RUNS` is the number of runs, `CLUSTER_SEED` the first seed, `CLUSTER_MESSAGES` the messages of a run.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{KEY, Member};
use crate::mock::{MockServer, Step, delta_step, finish_steps};
use crate::postgres::Cluster;

/// Time without data after which a reader goes to another server.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Seeded random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn pick(&mut self, addresses: &Mutex<Vec<SocketAddr>>) -> SocketAddr {
        let addresses = addresses.lock().unwrap();
        addresses[usize::try_from(self.below(addresses.len() as u64)).unwrap()]
    }
}

/// Message, and the frames that its reader has seen, by number.
struct History {
    id: String,
    frames: BTreeMap<u64, String>,
}

/// Client that posts one message and follows it to its end, whatever happens to the servers.
struct Reader {
    http: reqwest::Client,
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    random: Random,
}

impl Reader {
    async fn run(mut self, key: String) -> History {
        let id = self.post(&key).await;
        let mut history = History { id, frames: BTreeMap::new() };
        while !history.frames.values().any(|frame| is_end(frame)) {
            self.follow(&mut history).await;
        }
        history
    }

    /// Posts the message, again until a server accepts it.
    async fn post(&mut self, key: &str) -> String {
        loop {
            let url = format!("http://{}/api/v1/messages", self.random.pick(&self.addresses));
            let body = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"}).to_string();
            let request = self.http.post(url).bearer_auth(KEY).header("idempotency-key", key);
            let request = request.header("content-type", "application/json").body(body);
            let answer = async {
                let answer = request.send().await.ok()?;
                let text = answer.text().await.ok()?;
                serde_json::from_str::<Value>(&text).ok()?["message_id"].as_str().map(str::to_owned)
            };
            if let Ok(Some(id)) = tokio::time::timeout(PATIENCE, answer).await {
                return id;
            }
            tokio::time::sleep(Duration::from_millis(20 + self.random.below(50))).await;
        }
    }

    /// Follows the message on one server, until it ends or the server does not answer.
    async fn follow(&mut self, history: &mut History) {
        let last = history.frames.keys().last().copied().unwrap_or(0);
        let address = self.random.pick(&self.addresses);
        let url = format!("http://{address}/api/v1/messages/{}/events", history.id);
        let request = self.http.get(url).bearer_auth(KEY).header("last-event-id", last.to_string());
        let Ok(Ok(mut answer)) = tokio::time::timeout(PATIENCE, request.send()).await else { return };
        if answer.status() != 200 {
            tokio::time::sleep(Duration::from_millis(20 + self.random.below(50))).await;
            return;
        }
        let mut buffer = Vec::new();
        while let Ok(Ok(Some(chunk))) = tokio::time::timeout(PATIENCE, answer.chunk()).await {
            buffer.extend_from_slice(&chunk);
            while let Some(end) = buffer.windows(2).position(|bytes| bytes == b"\n\n") {
                let frame = String::from_utf8(buffer.drain(..end + 2).collect()).unwrap();
                let Some(number) =
                    frame.strip_prefix("id: ").and_then(|rest| rest.lines().next()?.parse().ok())
                else {
                    continue;
                };
                if let Some(earlier) = history.frames.insert(number, frame.clone()) {
                    panic!("{}: entry {number} comes again: {earlier} {frame}", history.id);
                }
                if is_end(&frame) {
                    return;
                }
            }
        }
    }
}

fn is_end(frame: &str) -> bool {
    frame.contains("\nevent: completed\n") || frame.contains("\nevent: error\n")
}

/// Checks what readers have seen against the log of a server that runs: no gap, no repeat, the same bytes at each number, one end.
async fn check_histories(http: &reqwest::Client, address: SocketAddr, histories: &[History], seed: u64) {
    for history in histories {
        let url = format!("http://{address}/api/v1/messages/{}/events", history.id);
        let log = http.get(url).bearer_auth(KEY).send().await.unwrap().text().await.unwrap();
        let frames: BTreeMap<u64, String> = log
            .split_inclusive("\n\n")
            .filter_map(|frame| {
                let number = frame.strip_prefix("id: ")?.lines().next()?.parse().ok()?;
                Some((number, frame.to_owned()))
            })
            .collect();
        assert_eq!(history.frames, frames, "seed {seed}, {}", history.id);
        assert_eq!(frames.values().filter(|frame| is_end(frame)).count(), 1, "seed {seed}: {log}");
        assert!(is_end(frames.values().last().unwrap()), "seed {seed}: {log}");
    }
    let ids: std::collections::BTreeSet<&str> = histories.iter().map(|history| history.id.as_str()).collect();
    assert_eq!(ids.len(), histories.len(), "seed {seed}: a message for each key");
}

/// Number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_agree_whatever_happens_to_the_servers() {
    let mut script: Vec<Step> =
        (0..40).map(|at| Step::After(30, Box::new(delta_step(&format!("word {at} "))))).collect();
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let postgres = Cluster::start().await;
    let database = postgres.new_database().await;
    let mut members: Vec<Member> = (0..3).map(|_| Member::start(&database, &mock)).collect();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let (first_seed, messages) = (setting("CLUSTER_SEED", 1), setting("CLUSTER_MESSAGES", 30));
    let mut ends = BTreeMap::<&str, usize>::new();
    for seed in first_seed..first_seed + setting("CLUSTER_RUNS", 4) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let addresses: Vec<SocketAddr> = members.iter().map(|member| member.server.address).collect();
        let addresses = Arc::new(Mutex::new(addresses));
        let readers: Vec<_> = (0..messages)
            .map(|at| {
                let reader = Reader {
                    http: http.clone(),
                    addresses: addresses.clone(),
                    random: Random(random.below(u64::MAX) | 1),
                };
                tokio::spawn(reader.run(format!("run {seed}, message {at}")))
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100 + random.below(1500))).await;
        let victim = usize::try_from(random.below(3)).unwrap();
        match random.below(4) {
            0 => {
                members[victim].kill();
                tokio::time::sleep(Duration::from_millis(random.below(2000))).await;
                members[victim] = Member::start(&database, &mock);
                addresses.lock().unwrap()[victim] = members[victim].server.address;
            }
            1 => {
                members[victim].signal("STOP");
                // Longer or shorter than the lease.
                tokio::time::sleep(Duration::from_millis(500 + random.below(4000))).await;
                members[victim].signal("CONT");
            }
            2 => {
                postgres.stop_server();
                tokio::time::sleep(Duration::from_millis(random.below(2500))).await;
                drop(postgres.start_server().await);
            }
            _ => {}
        }
        let mut histories = Vec::new();
        for reader in readers {
            let history = tokio::time::timeout(Duration::from_secs(60), reader).await;
            histories.push(history.unwrap_or_else(|_| panic!("seed {seed}: a message has no end")).unwrap());
        }
        let address = members[(victim + 1) % 3].server.address;
        check_histories(&http, address, &histories, seed).await;
        for history in &histories {
            let is_completed = history.frames.values().last().unwrap().contains("\nevent: completed\n");
            *ends.entry(if is_completed { "completed" } else { "error" }).or_default() += 1;
        }
    }
    println!("{ends:?}");
    assert!(ends["completed"] > 0);
}
