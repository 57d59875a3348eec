//! Connections that are cut or silent: from a server to the database, between servers, and of readers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::proxy::Proxy;
use super::readers::{Readers, plain_request};
use super::{KEY, LEASE_SECONDS, Member, Setup, long_reply};
use crate::client::{Event, EventStream, check_stream, event_names, stream_message_id};
use crate::mock::{Gate, MockServer, Step, delta_step};
use crate::postgres::{cluster as postgres, port_of};
use crate::server::with_timeout;

/// Streams on each server.
const STREAMS: usize = 12;
/// Clients of the server that is cut off.
const CLIENTS: usize = 24;
/// Longest time from a cut to the ends on other servers: the lease, and looks at the database.
const TAKEOVER: Duration = Duration::from_secs(LEASE_SECONDS as u64 + 4);
/// Longest time in which a server that is cut off answers.
const ANSWER: Duration = Duration::from_secs(10);

/// Fault of a connection, and how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Cut,
    /// Silence, after which the connections go on.
    Silence,
    /// Silence, after which only new connections work.
    Loss,
}

impl Fault {
    fn begin(self, proxy: &Proxy) {
        match self {
            Fault::Cut => proxy.cut(),
            Fault::Silence | Fault::Loss => proxy.silence(),
        }
    }

    fn end(self, proxy: &Proxy) {
        match self {
            Fault::Cut | Fault::Silence => proxy.heal(),
            Fault::Loss => proxy.heal_for_new(),
        }
    }
}

/// Frames of numbered events.
fn frames(events: &[Event]) -> Vec<&str> {
    events.iter().filter(|event| event.id.is_some()).map(|event| event.frame.as_str()).collect()
}

/// Reads all that a stream shows, also if it is broken off.
async fn read_to_cut(mut stream: EventStream, mut seen: Vec<Event>) -> Vec<Event> {
    while let Some(event) = stream.next_event_or_cut().await {
        seen.push(event);
    }
    seen
}

/// Asks a server again and again, with many requests at once, until it is told to stop. Each is answered in time.
fn start_load(address: SocketAddr, message: &str, stop: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let paths = ["cancel", "stream_tokens", "", "stream_tokens"];
    let load = paths.into_iter().cycle().take(CLIENTS).map(|path| {
        let (http, stop) = (http.clone(), stop.clone());
        let url = format!("http://{address}/api/v1/messages/{message}/{path}");
        let url = url.trim_end_matches('/').to_owned();
        tokio::spawn(async move {
            while !*stop.borrow() {
                let request = if path.is_empty() { http.get(&url) } else { http.post(&url) };
                let answer = tokio::time::timeout(ANSWER, request.bearer_auth(KEY).send()).await;
                let status =
                    answer.unwrap_or_else(|_| panic!("{url} is answered")).unwrap().status().as_u16();
                assert!(matches!(status, 200..=202 | 409 | 503), "{url}: {status}");
            }
        })
    });
    load.collect()
}

/// One of three servers is cut off from the database for longer than its lease.
async fn cut_off_one_server(fault: Fault) {
    let gate = Gate::new();
    let mut script = vec![delta_step("begin "), Step::Wait(gate.clone())];
    script.extend(long_reply(30, 60));
    let mock = MockServer::start(vec![script]).await;
    let database = postgres().await.new_database().await;
    let (mut proxies, mut members) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let proxy = Proxy::start(port_of(&database)).await;
        members.push(Member::start(&proxy.database_url(&database), &mock));
        proxies.push(proxy);
    }
    let mut streams = Vec::new();
    for at in 0..3 * STREAMS {
        streams.push(members[at % 3].server.open_stream(&plain_request()).await);
    }
    let mut readers = Vec::new();
    for mut stream in streams {
        let seen = stream.read_until("final_delta").await;
        readers.push((stream_message_id(&seen), tokio::spawn(read_to_cut(stream, seen))));
    }
    // Another message, which has ended: requests about it are under way at the moment of the fault.
    let answer = members[0].server.post("/api/v1/messages", &plain_request()).await;
    let other = answer.json["message_id"].as_str().unwrap().to_owned();
    members[0].server.post(&format!("/api/v1/messages/{other}/cancel"), &Value::Null).await;
    members[0].server.wait_ended(&other).await;
    let (stop, stopped) = watch::channel(false);
    let load = start_load(members[0].server.address, &other, &stopped);
    tokio::time::sleep(Duration::from_millis(300)).await;
    fault.begin(&proxies[0]);
    // The model goes on.
    gate.open();
    let cut = Instant::now();
    for at in (0..3 * STREAMS).step_by(3) {
        let record = members[1].server.wait_ended(&readers[at].0).await;
        assert_eq!(record["status"], "failed", "{record}");
    }
    assert!(cut.elapsed() < TAKEOVER, "{:?}", cut.elapsed());
    // The server says so, whatever it is asked, and does not keep anybody waiting.
    assert_eq!(members[0].server.get("/readyz").await.status, 503);
    let other = format!("/api/v1/messages/{}", readers[1].0);
    let server = &members[0].server;
    let (cancellation, no_body, request) = (format!("{other}/cancel"), Value::Null, plain_request());
    let answers = async {
        tokio::join!(
            server.post("/api/v1/messages", &request),
            server.post(&cancellation, &no_body),
            server.get(&other)
        )
    };
    let answers = tokio::time::timeout(ANSWER, answers).await.expect("it answers");
    for answer in [answers.0, answers.1, answers.2] {
        assert_eq!((answer.status, answer.problem_code()), (503, "store_unavailable"), "{}", answer.text);
    }
    fault.end(&proxies[0]);
    let healed = Instant::now();
    // It works again.
    with_timeout(async {
        while members[0].server.get("/readyz").await.status != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut stream = members[0].server.open_stream(&plain_request()).await;
    stream.read_until("final_delta").await;
    drop(stream);
    assert!(healed.elapsed() < ANSWER * 2, "{:?}", healed.elapsed());
    stop.send_replace(true);
    for client in load {
        with_timeout(client).await.unwrap();
    }
    // Nobody has seen anything that is not in the log.
    for (at, (id, reader)) in readers.into_iter().enumerate() {
        let seen = with_timeout(reader).await.unwrap();
        let log = members[at % 3].server.follow(&id, &[]).await.read_rest().await;
        check_stream(&log);
        if at % 3 == 0 {
            assert!(frames(&log).starts_with(&frames(&seen)), "{seen:#?}\n{log:#?}");
            assert_eq!(log.last().unwrap().data["code"], "interrupted");
        } else {
            assert_eq!(frames(&log), frames(&seen));
            assert_eq!(event_names(&log).last(), Some(&"completed"));
        }
    }
    if fault == Fault::Loss {
        // It also ends again what others leave behind.
        let mut left = members[1].server.open_stream(&plain_request()).await;
        let id = stream_message_id(&left.read_until("final_delta").await);
        members[2].kill();
        members[1].kill();
        assert_eq!(members[0].server.wait_ended(&id).await["status"], "failed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_cut_off_from_the_database_shows_nothing_more_until_it_is_healed() {
    cut_off_one_server(Fault::Cut).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_silent_for_a_while_keeps_nobody_waiting() {
    cut_off_one_server(Fault::Silence).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_stay_silent_for_ever_are_given_up() {
    cut_off_one_server(Fault::Loss).await;
}

/// Two servers whose addresses are those of proxies.
async fn start_behind_proxies(mock: &MockServer) -> Vec<(Proxy, Member)> {
    let database = postgres().await.new_database().await;
    let mut members = Vec::new();
    for _ in 0..2 {
        let proxy = Proxy::start(0).await;
        let setup = Setup { public_port: Some(proxy.port), ..Setup::new(&database, mock) };
        let member = Member::start_with(&setup);
        proxy.set_target(member.server.address.port());
        members.push((proxy, member));
    }
    members
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_cut_from_each_other_follow_by_the_database_and_refuse_commands() {
    let gates = [Gate::new(), Gate::new()];
    let scripts = gates.iter().map(|gate| {
        vec![delta_step("one "), Step::Wait(gate.clone()), delta_step("two "), Step::WaitDisconnect]
    });
    let mock = MockServer::start(scripts.collect()).await;
    let members = start_behind_proxies(&mock).await;
    let ((proxy, owner), (_, other)) = (&members[0], &members[1]);
    for (fault, gate) in [Fault::Cut, Fault::Silence].into_iter().zip(gates) {
        let mut own = owner.server.open_stream(&plain_request()).await;
        let mut seen = own.read_until("final_delta").await;
        let id = stream_message_id(&seen);
        let mut remote = other.server.follow(&id, &[]).await;
        let mut remote_seen = remote.read_until("final_delta").await;
        fault.begin(proxy);
        gate.open();
        seen.extend(own.read_until("final_delta").await);
        remote_seen.extend(remote.read_until("final_delta").await);
        assert_eq!(frames(&remote_seen), frames(&seen));
        // A reader that comes now has only the database.
        let late_seen = other.server.follow(&id, &[]).await.read_until("final_delta").await;
        assert_eq!(frames(&late_seen)[..], frames(&seen)[..frames(&late_seen).len()]);
        let path = format!("/api/v1/messages/{id}/cancel");
        if fault == Fault::Cut {
            let answer = other.server.post(&path, &Value::Null).await;
            assert_eq!((answer.status, answer.problem_code()), (503, "owner_unreachable"), "{}", answer.text);
        }
        fault.end(proxy);
        let answer = other.server.post(&path, &Value::Null).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        seen.extend(own.read_rest().await);
        remote_seen.extend(remote.read_rest().await);
        assert_eq!(frames(&remote_seen), frames(&seen));
        check_stream(&seen);
        assert_eq!(other.server.wait_ended(&id).await["status"], "cancelled");
    }
    for (_, member) in &members {
        assert_eq!(member.server.metric("tambour_takeovers_total").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_vanish_all_at_once_go_on_at_other_servers() {
    let mock = MockServer::start(vec![long_reply(40, 60)]).await;
    let database = postgres().await.new_database().await;
    let members: Vec<Member> = (0..3).map(|_| Member::start(&database, &mock)).collect();
    let mut readers = Readers::new(members.iter().map(|member| member.server.address).collect(), 1);
    readers.start_plain(3 * STREAMS);
    readers.wait_for(|progress| progress.begun == 3 * STREAMS).await;
    for _ in 0..3 {
        readers.depart();
        let entries = readers.progress().entries;
        readers.wait_for(|progress| progress.entries > entries + 3 * STREAMS).await;
    }
    let histories = readers.finish().await;
    readers.check(members[0].server.address, &histories, "readers that vanish").await;
    assert!(histories.iter().all(super::readers::History::is_completed), "no message is given up");
    assert_eq!(mock.calls().started, 3 * STREAMS);
}
