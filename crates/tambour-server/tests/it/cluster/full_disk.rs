//! A database whose disk is full, and gets room again.
//!
//! No file of the database may become longer than a limit, which its log and its small tables do not reach. That takes no
//! rights and no file system of its own; the database sees the same failure of a write.

use super::readers::{History, Readers, plain_request};
use super::{Member, long_reply};
use crate::mock::MockServer;
use crate::postgres::Cluster;
use crate::server::with_timeout;

/// Messages at a time.
const STREAMS: usize = 30;
/// Maximum size of a file of the database while its disk is full: that of a file of its log.
const FILE_LIMIT: u64 = 1 << 20;

/// Rows of the past, of which each table has more than a file may have while the disk is full.
const ROWS: [&str; 2] = [
    "insert into entries (message_id, first, last, epoch, day, body) \
     select 'past', number, number, 1, cast(now() at time zone 'utc' as date) + cast(number % 2 as int), \
     cast(repeat(md5(cast(number as text)), 55) as bytea) from generate_series(1, 1600) as number",
    "insert into messages (id, conversation_id, request_id, owner, created, status, request) \
     select 'past_' || number, 'past', '', 'past', to_char(now() at time zone 'utc', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"'), \
     'completed', repeat(md5(cast(number as text)), 55) from generate_series(1, 800) as number",
];

/// Waits until a new message is refused, and returns how.
async fn wait_refused(member: &Member) -> (u16, String) {
    with_timeout(async {
        loop {
            let answer = member.server.post("/api/v1/messages", &plain_request()).await;
            if answer.status != 202 {
                return (answer.status, answer.problem_code().to_owned());
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_wait_for_room_on_the_disk_of_the_database_and_new_ones_are_refused() {
    let mock = MockServer::start(vec![long_reply(50, 40)]).await;
    let postgres = Cluster::start().await;
    let database = postgres.new_database().await;
    postgres.execute(&database, &ROWS).await;
    let mut members: Vec<Member> = (0..3).map(|_| Member::start(&database, &mock)).collect();
    let mut readers = Readers::new(members.iter().map(|member| member.server.address).collect(), 3);
    readers.start_plain(STREAMS);
    readers.wait_for(|progress| progress.begun == STREAMS).await;
    postgres.limit_files(Some(FILE_LIMIT));
    for member in &members {
        assert_eq!(wait_refused(member).await, (503, "store_unavailable".to_owned()));
    }
    // What this server has in memory only is lost with it: nobody has seen it.
    members[0].kill();
    readers.replace(0, members[1].server.address);
    assert_eq!(members[1].server.get("/readyz").await.status, 200, "the lease is kept");
    let waiting = members[1].server.metric("tambour_runs_held").await;
    assert!(waiting > 0, "messages wait");
    postgres.limit_files(None);
    let histories = readers.finish().await;
    readers.check(members[1].server.address, &histories, "full disk").await;
    let completed = histories.iter().filter(|history| history.is_completed()).count();
    assert!((1..STREAMS).contains(&completed), "{completed}: those of the killed server are interrupted");
    assert!(histories.iter().any(History::is_completed));
    let answer = members[1].server.post("/api/v1/messages", &plain_request()).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let id = answer.json["message_id"].as_str().unwrap().to_owned();
    assert_eq!(members[2].server.wait_ended(&id).await["status"], "completed");
}
