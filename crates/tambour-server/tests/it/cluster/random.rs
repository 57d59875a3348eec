//! Random faults while many readers look on, and a checker of what they have seen and what was done.
//!
//! `CLUSTER_RUNS` is the number of runs, `CLUSTER_SEED` the first seed, `CLUSTER_MESSAGES` the messages of a run. Each run has
//! two faults; five runs with seeds that follow each other have them all.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::proxy::Proxy;
use super::readers::{History, Random, Readers, plain_request};
use super::{Member, Setup, long_reply};
use crate::mock::{MockServer, ReceivedRequest, Step, reply_script, response_script};
use crate::postgres::{Cluster, port_of};
use crate::tool_kit::{answer_reply, plan_reply, tool_request, tool_schema};

/// One message of so many calls a tool.
const TOOL_MESSAGES: u64 = 3;

/// Number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Fault of a run.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Kill,
    Replacement,
    Stop,
    DatabaseRestart,
    SlowDisk,
    DatabaseCut,
    DatabaseSilence,
    DatabaseLoss,
    PeerCut,
    PeerSilence,
}

/// Faults, in the order in which runs have them.
const FAULTS: [Fault; 10] = [
    Fault::Kill,
    Fault::DatabaseLoss,
    Fault::Stop,
    Fault::PeerSilence,
    Fault::Replacement,
    Fault::DatabaseCut,
    Fault::DatabaseRestart,
    Fault::SlowDisk,
    Fault::DatabaseSilence,
    Fault::PeerCut,
];

/// Server, with proxies between it and the others, and between it and the database.
struct Node {
    member: Member,
    to_database: Proxy,
    to_peers: Proxy,
}

/// Servers, database, model and tool of the test.
struct World {
    postgres: Cluster,
    database: String,
    model: MockServer,
    nodes: Vec<Node>,
}

impl World {
    async fn start(model: MockServer) -> World {
        let postgres = Cluster::start_with(&["fsync=on"]).await;
        let database = postgres.new_database().await;
        let mut nodes = Vec::new();
        for _ in 0..3 {
            let (to_database, to_peers) = (Proxy::start(port_of(&database)).await, Proxy::start(0).await);
            let member = start_member(&database, &model, &to_database, &to_peers);
            nodes.push(Node { member, to_database, to_peers });
        }
        World { postgres, database, model, nodes }
    }

    /// Starts a server in the place of one that is gone.
    fn restart(&mut self, at: usize, readers: &Readers) {
        let Node { to_database, to_peers, .. } = &self.nodes[at];
        self.nodes[at].member = start_member(&self.database, &self.model, to_database, to_peers);
        readers.replace(at, self.nodes[at].member.server.address);
    }

    /// Lets a fault happen to a server, or to all, and ends it.
    async fn strike(&mut self, fault: Fault, victim: usize, random: &mut Random, readers: &Readers) {
        // Longer or shorter than the lease.
        let duration = Duration::from_millis(200 + random.below(3500));
        let node = &mut self.nodes[victim];
        match fault {
            Fault::Kill => {
                node.member.kill();
                tokio::time::sleep(duration / 2).await;
                self.restart(victim, readers);
            }
            Fault::Replacement => {
                node.member.signal("TERM");
                while node.member.child.try_wait().unwrap().is_none() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                self.restart(victim, readers);
            }
            Fault::Stop => {
                node.member.signal("STOP");
                tokio::time::sleep(duration).await;
                node.member.signal("CONT");
            }
            Fault::DatabaseRestart => {
                self.postgres.stop_server();
                tokio::time::sleep(duration / 2).await;
                drop(self.postgres.start_server().await);
            }
            Fault::SlowDisk => {
                self.postgres.set_commit_delay(100_000).await;
                tokio::time::sleep(duration).await;
                self.postgres.set_commit_delay(0).await;
            }
            Fault::DatabaseCut => {
                node.to_database.cut();
                tokio::time::sleep(duration).await;
                node.to_database.heal();
            }
            Fault::DatabaseSilence | Fault::DatabaseLoss => {
                node.to_database.silence();
                tokio::time::sleep(duration).await;
                if matches!(fault, Fault::DatabaseLoss) {
                    node.to_database.heal_for_new();
                } else {
                    node.to_database.heal();
                }
            }
            Fault::PeerCut => {
                node.to_peers.cut();
                tokio::time::sleep(duration).await;
                node.to_peers.heal();
            }
            Fault::PeerSilence => {
                node.to_peers.silence();
                tokio::time::sleep(duration).await;
                node.to_peers.heal_for_new();
            }
        }
    }
}

fn start_member(database: &str, model: &MockServer, to_database: &Proxy, to_peers: &Proxy) -> Member {
    let setup = Setup::new(&to_database.database_url(database), model);
    let member = Member::start_with(&Setup { public_port: Some(to_peers.port), ..setup });
    to_peers.set_target(member.server.address.port());
    member
}

/// Reply of the model: text, or a call of the tool and text after it.
fn choose_reply(request: &ReceivedRequest) -> Vec<Step> {
    let messages = request.body["messages"].as_array().unwrap();
    let texts = || messages.iter().filter_map(|message| message["content"].as_str());
    let name = texts().find_map(|text| Some(text.split_once("action of ")?.1));
    // The name ends with the line.
    let Some(name) = name.map(|name| name.lines().next().unwrap_or(name)) else { return long_reply(40, 30) };
    // The results of the tool come after the model's own words.
    if messages.iter().any(|message| message["role"] == "assistant") {
        reply_script(&answer_reply("It is done."), 9)
    } else {
        reply_script(&plan_reply(&[("act", name)]), 9)
    }
}

/// Answer of the tool, after a moment.
fn tool_answer() -> Vec<Step> {
    let mut answer = response_script(200, "application/json", "1");
    answer[1] = Step::After(300, Box::new(answer[1].clone()));
    answer
}

/// Checks that no action was done twice, and that each of a completed message was done.
fn check_actions(tool: &MockServer, histories: &[History], label: &str) {
    let (mut calls, mut actions) = (BTreeMap::<String, usize>::new(), BTreeMap::<String, usize>::new());
    for request in tool.requests() {
        *calls.entry(request.header("idempotency-key").unwrap().to_owned()).or_default() += 1;
        *actions.entry(request.body["args"]["userInput"].to_string()).or_default() += 1;
    }
    assert!(calls.values().all(|count| *count == 1), "{label}: {calls:?}");
    assert!(actions.values().all(|count| *count == 1), "{label}: {actions:?}");
    let succeeded = |history: &&History| {
        history
            .frames
            .values()
            .any(|frame| frame.contains("\nevent: tool_result\n") && frame.contains("\"ok\":true"))
    };
    let expected = histories.iter().filter(succeeded).count();
    assert!(actions.keys().filter(|name| name.contains(label)).count() >= expected, "{label}: {actions:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_agree_whatever_happens_to_the_servers() {
    let tool = MockServer::start(vec![tool_answer()]).await;
    let mut world = World::start(MockServer::start_with(choose_reply).await).await;
    let executor = json!({"kind": "http", "url": format!("http://{}/act", tool.address)});
    let answer = world.nodes[0]
        .member
        .server
        .put("/api/v1/tools/act", &json!({"schema": tool_schema(), "executor": executor}))
        .await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let (first_seed, messages) = (setting("CLUSTER_SEED", 1), setting("CLUSTER_MESSAGES", 30));
    let mut ends = BTreeMap::<&str, usize>::new();
    for seed in first_seed..first_seed + setting("CLUSTER_RUNS", 4) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let addresses = world.nodes.iter().map(|node| node.member.server.address).collect();
        let mut readers = Readers::new(addresses, seed);
        let label = format!("seed {seed}");
        for at in 0..messages {
            let key = format!("{label}, message {at}");
            let body: Value = if at % TOOL_MESSAGES == 0 {
                tool_request(&json!({"text": format!("action of {key}"), "tools": ["act"]}))
            } else {
                plain_request()
            };
            readers.start(key, body);
        }
        let mut faults = Vec::new();
        for at in [2 * seed, 2 * seed + 1] {
            tokio::time::sleep(Duration::from_millis(100 + random.below(700))).await;
            let victim = usize::try_from(random.below(3)).unwrap();
            let fault = FAULTS[usize::try_from(at % 10).unwrap()];
            faults.push((fault, victim));
            world.strike(fault, victim, &mut random, &readers).await;
        }
        let label = format!("{label} {faults:?}");
        let histories = readers.finish().await;
        let address = world.nodes[(faults[1].1 + 1) % 3].member.server.address;
        readers.check(address, &histories, &label).await;
        check_actions(&tool, &histories, &format!("seed {seed},"));
        for history in &histories {
            *ends.entry(if history.is_completed() { "completed" } else { "error" }).or_default() += 1;
        }
    }
    println!("{ends:?}, {} actions", tool.requests().len());
    assert!(ends["completed"] > 0);
    assert!(!tool.requests().is_empty());
}
