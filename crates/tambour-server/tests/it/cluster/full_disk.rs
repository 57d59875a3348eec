//! A database whose disk is full, and gets room again.
//!
//! No file of the database may become longer than a limit, which its log and its small tables do not reach. That takes no
//! rights and no file system of its own; the database sees the same failure of a write.

use super::Member;
use super::readers::{Random, Readers, plain_request};
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::postgres::Cluster;
use crate::server::with_timeout;

/// Messages at a time.
const STREAMS: usize = 30;
/// Maximum size of a file of the database while its disk is full: that of a file of its log.
const FILE_LIMIT: u64 = 1 << 20;

/// Rows of the past, of which each table has more than a file may have while the disk is full; the second ones are too long
/// for the table itself.
const ROWS: [&str; 3] = [
    "insert into entries (message_id, first, last, epoch, day, body) \
     select 'past', number, number, 1, cast(now() at time zone 'utc' as date) + cast(number % 2 as int), \
     cast(repeat(md5(cast(number as text)), 55) as bytea) from generate_series(1, 1600) as number",
    "insert into entries (message_id, first, last, epoch, day, body) \
     select 'long past', number, number, 1, cast(now() at time zone 'utc' as date) + cast(number % 2 as int), \
     (select decode(string_agg(md5(number || ':' || part), ''), 'hex') from generate_series(1, 250) as part) \
     from generate_series(1, 800) as number",
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
    let gate = Gate::new();
    // All of them together are far more than has room on the pages that exist.
    let mut random = Random(7);
    let mut word = || (0..50).map(|_| format!("{:x} ", random.below(u64::MAX))).collect::<String>();
    let mut script = vec![delta_step("begin "), Step::Wait(gate.clone())];
    script.extend((0..30).map(|_| Step::After(20, Box::new(delta_step(&word())))));
    script.extend(finish_steps("stop"));
    let mock = MockServer::start(vec![script]).await;
    let postgres = Cluster::start().await;
    let database = postgres.new_database().await;
    postgres.execute(&database, &ROWS).await;
    let mut members: Vec<Member> = (0..3).map(|_| Member::start(&database, &mock)).collect();
    let mut readers = Readers::new(members.iter().map(|member| member.server.address).collect(), 3);
    readers.start_plain(STREAMS);
    readers.wait_for(|progress| progress.begun == STREAMS).await;
    postgres.limit_files(Some(FILE_LIMIT));
    gate.open();
    for member in &members {
        assert_eq!(wait_refused(member).await, (503, "store_unavailable".to_owned()));
    }
    // Entries that are only in the memory of this server are lost with it: nobody has seen them.
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
    let answer = members[1].server.post("/api/v1/messages", &plain_request()).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let id = answer.json["message_id"].as_str().unwrap().to_owned();
    assert_eq!(members[2].server.wait_ended(&id).await["status"], "completed");
}
