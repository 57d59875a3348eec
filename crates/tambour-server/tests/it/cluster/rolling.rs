//! Servers that are replaced one after the other, as at an update.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::readers::{History, Readers, plain_request};
use super::{KEY, Member, long_reply};
use crate::mock::{Gate, MockServer, Step, delta_step};
use crate::postgres::cluster as postgres;
use crate::server::with_timeout;

/// Messages that begin before each stop.
const STREAMS: usize = 20;

/// Posts messages until it is told to stop; at each time one of the servers accepts. Returns the ids.
async fn post_always(addresses: Arc<Mutex<Vec<SocketAddr>>>, stop: watch::Receiver<bool>) -> Vec<String> {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut ids = Vec::new();
    while !*stop.borrow() {
        let mut accepted = None;
        let mut refusals = Vec::new();
        let candidates = addresses.lock().unwrap().clone();
        for address in candidates {
            let request = http.post(format!("http://{address}/api/v1/messages")).bearer_auth(KEY);
            let request =
                request.header("content-type", "application/json").body(plain_request().to_string());
            match request.send().await {
                Ok(answer) if answer.status() == 202 => {
                    let answer: Value = answer.json().await.unwrap();
                    accepted = answer["message_id"].as_str().map(str::to_owned);
                    break;
                }
                Ok(answer) => refusals.push(answer.text().await.unwrap_or_default()),
                Err(error) => refusals.push(error.to_string()),
            }
        }
        ids.push(accepted.unwrap_or_else(|| panic!("one of the servers accepts: {refusals:?}")));
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    ids
}

/// Stops a server as a service manager does, lets its messages go on once it has said so, and waits for its end.
async fn drain(member: &mut Member, gate: &Gate) {
    // A connection from before: the server takes no new ones.
    let mut socket = TcpStream::connect(member.server.address).await.unwrap();
    let mut answers = Vec::new();
    for status in ["HTTP/1.1 200", "HTTP/1.1 503"] {
        with_timeout(async {
            while !String::from_utf8_lossy(&answers).contains(status) {
                socket.write_all(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
                assert!(socket.read_buf(&mut answers).await.unwrap() > 0, "it answers");
            }
        })
        .await;
        if status == "HTTP/1.1 200" {
            member.signal("TERM");
        }
    }
    gate.open();
    with_timeout(async {
        while member.child.try_wait().unwrap().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_is_lost_when_servers_are_replaced_one_after_the_other() {
    let gate = Arc::new(Mutex::new(Gate::new()));
    let reply_gate = gate.clone();
    // Messages are running when their server stops.
    let mock = MockServer::start_with(move |_| {
        let mut script = vec![delta_step("begin "), Step::Wait(reply_gate.lock().unwrap().clone())];
        script.extend(long_reply(20, 30));
        script
    });
    let mock = mock.await;
    let database = postgres().await.new_database().await;
    let migrations =
        "select array_agg(version || ' ' || encode(checksum, 'hex') order by version) from _sqlx_migrations";
    let pool = sqlx::PgPool::connect(&database).await.unwrap();
    let before: Vec<String> = sqlx::query_scalar(migrations).fetch_one(&pool).await.unwrap();
    let mut members: Vec<Member> = (0..3).map(|_| Member::start(&database, &mock)).collect();
    let mut readers = Readers::new(members.iter().map(|member| member.server.address).collect(), 5);
    let (stop, stopped) = watch::channel(false);
    let posting = tokio::spawn(post_always(readers.addresses.clone(), stopped));
    for (at, member) in members.iter_mut().enumerate() {
        let round_gate = Gate::new();
        *gate.lock().unwrap() = round_gate.clone();
        for number in 0..STREAMS {
            readers.start(format!("before stop {at}, message {number}"), plain_request());
        }
        readers.wait_for(|progress| progress.begun == (at + 1) * STREAMS).await;
        drain(member, &round_gate).await;
        *member = Member::start(&database, &mock);
        readers.replace(at, member.server.address);
    }
    stop.send_replace(true);
    let ids = with_timeout(posting).await.unwrap();
    assert!(ids.len() > STREAMS);
    let histories = readers.finish().await;
    readers.check(members[0].server.address, &histories, "replaced servers").await;
    assert!(histories.iter().all(History::is_completed), "each message has the time to end");
    for id in &ids {
        let record = members[0].server.wait_ended(id).await;
        assert_eq!(record["status"], "completed", "{record}");
    }
    // Servers of one version leave the schema, which a later version migrates from its first state on, as it is.
    let after: Vec<String> = sqlx::query_scalar(migrations).fetch_one(&pool).await.unwrap();
    assert!(after == before && after[0].starts_with("1 "), "{after:?}");
    assert_eq!(mock.calls().started, ids.len() + 3 * STREAMS, "no message is asked twice");
    for member in &members {
        assert_eq!(member.server.metric("tambour_takeovers_total").await, 0);
    }
}
