//! Random faults while many readers look on, and a checker of what they have seen.
//!
//! `CLUSTER_RUNS` is the number of runs, `CLUSTER_SEED` the first seed, `CLUSTER_MESSAGES` the messages of a run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Member;
use super::readers::{Random, Readers, plain_request};
use crate::mock::{MockServer, Step, delta_step, finish_steps};
use crate::postgres::Cluster;

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
    let (first_seed, messages) = (setting("CLUSTER_SEED", 1), setting("CLUSTER_MESSAGES", 30));
    let mut ends = BTreeMap::<&str, usize>::new();
    for seed in first_seed..first_seed + setting("CLUSTER_RUNS", 4) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut readers = Readers::new(members.iter().map(|member| member.server.address).collect(), seed);
        for at in 0..messages {
            readers.start(format!("run {seed}, message {at}"), plain_request());
        }
        tokio::time::sleep(Duration::from_millis(100 + random.below(1500))).await;
        let victim = usize::try_from(random.below(3)).unwrap();
        match random.below(4) {
            0 => {
                members[victim].kill();
                tokio::time::sleep(Duration::from_millis(random.below(2000))).await;
                members[victim] = Member::start(&database, &mock);
                readers.replace(victim, members[victim].server.address);
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
        let histories = readers.finish().await;
        let address = members[(victim + 1) % 3].server.address;
        readers.check(address, &histories, &format!("seed {seed}")).await;
        for history in &histories {
            let is_completed = history.is_completed();
            *ends.entry(if is_completed { "completed" } else { "error" }).or_default() += 1;
        }
    }
    println!("{ends:?}");
    assert!(ends["completed"] > 0);
}
