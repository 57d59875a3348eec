//! A database whose disk is slow.

use std::time::{Duration, Instant};

use super::readers::{History, Readers};
use super::{Member, long_reply};
use crate::mock::MockServer;
use crate::postgres::Cluster;

/// Messages at a time.
const STREAMS: usize = 60;
/// Time that a commit takes, in microseconds; the most that PostgreSQL allows.
const COMMIT_DELAY: u32 = 100_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_end_and_leases_are_kept_when_every_commit_takes_a_tenth_of_a_second() {
    let mock = MockServer::start(vec![long_reply(10, 30)]).await;
    let postgres = Cluster::start_with(&["fsync=on"]).await;
    let database = postgres.new_database().await;
    let members: Vec<Member> = (0..3).map(|_| Member::start(&database, &mock)).collect();
    postgres.set_commit_delay(COMMIT_DELAY).await;
    // The disk is slow: a commit waits at least for the delay.
    let begin = Instant::now();
    postgres.execute(&database, &["create table anything (number bigint)", "drop table anything"]).await;
    assert!(begin.elapsed() >= 2 * Duration::from_micros(COMMIT_DELAY.into()), "{:?}", begin.elapsed());
    let mut readers = Readers::new(members.iter().map(|member| member.server.address).collect(), 2);
    readers.start_plain(STREAMS);
    let histories = readers.finish().await;
    postgres.set_commit_delay(0).await;
    readers.check(members[0].server.address, &histories, "slow disk").await;
    assert!(histories.iter().all(History::is_completed), "no message is given up");
    assert_eq!(mock.calls().started, STREAMS);
    for member in &members {
        assert_eq!(member.server.metric("tambour_takeovers_total").await, 0);
        assert!(!member.log().contains("the lease of this server is not renewed"));
    }
}
