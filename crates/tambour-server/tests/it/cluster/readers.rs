//! Clients that post a message and follow it to its end, whatever happens to the servers, and a checker of what they have seen.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::KEY;

/// Time without data after which a reader goes to another server.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Longest time to the end of a message.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Seeded random numbers.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: u64) -> u64 {
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
pub(super) struct History {
    pub(super) id: String,
    pub(super) frames: BTreeMap<u64, String>,
}

impl History {
    /// Returns `true` if the message has ended with `completed`.
    pub(super) fn is_completed(&self) -> bool {
        self.frames.values().last().is_some_and(|frame| frame.contains("\nevent: completed\n"))
    }

    fn has_end(&self) -> bool {
        self.frames.values().any(|frame| is_end(frame))
    }
}

/// Progress of all readers of a group, for faults at certain moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Messages that a server has accepted.
    pub(super) accepted: usize,
    /// Readers that have seen a part of the reply.
    pub(super) begun: usize,
    /// Entries that readers have seen.
    pub(super) entries: usize,
}

/// Group of readers that share a list of servers.
pub(super) struct Readers {
    http: reqwest::Client,
    pub(super) addresses: Arc<Mutex<Vec<SocketAddr>>>,
    progress: Arc<watch::Sender<Progress>>,
    /// Changes when all readers are to go to other servers at once.
    departure: Arc<watch::Sender<u64>>,
    random: Random,
    tasks: Vec<JoinHandle<History>>,
}

impl Readers {
    pub(super) fn new(addresses: Vec<SocketAddr>, seed: u64) -> Readers {
        Readers {
            http: reqwest::Client::builder().no_proxy().build().unwrap(),
            addresses: Arc::new(Mutex::new(addresses)),
            progress: Arc::default(),
            departure: Arc::default(),
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            tasks: Vec::new(),
        }
    }

    /// Starts a reader that posts this message with this idempotency key.
    pub(super) fn start(&mut self, key: String, body: Value) {
        let reader = Reader {
            http: self.http.clone(),
            addresses: self.addresses.clone(),
            progress: self.progress.clone(),
            departure: self.departure.subscribe(),
            random: Random(self.random.below(u64::MAX) | 1),
        };
        self.tasks.push(tokio::spawn(reader.run(key, body)));
    }

    /// Starts so many readers of plain messages.
    pub(super) fn start_plain(&mut self, count: usize) {
        for at in 0..count {
            self.start(format!("message {at}"), plain_request());
        }
    }

    /// Waits until the readers have come so far.
    pub(super) async fn wait_for(&self, condition: impl Fn(&Progress) -> bool) {
        let mut progress = self.progress.subscribe();
        let waiting = tokio::time::timeout(END_TIMEOUT, progress.wait_for(|progress| condition(progress)));
        let _ = waiting.await.expect("readers come so far").unwrap();
    }

    pub(super) fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Breaks off all streams at once; their readers go on at other servers.
    pub(super) fn depart(&self) {
        self.departure.send_modify(|departures| *departures += 1);
    }

    /// Replaces the address of a server.
    pub(super) fn replace(&self, at: usize, address: SocketAddr) {
        self.addresses.lock().unwrap()[at] = address;
    }

    /// Waits for the ends of all messages.
    pub(super) async fn finish(&mut self) -> Vec<History> {
        let mut histories = Vec::new();
        for task in std::mem::take(&mut self.tasks) {
            let history = tokio::time::timeout(END_TIMEOUT, task).await;
            histories.push(history.expect("each message has an end").unwrap());
        }
        histories
    }

    /// Checks what readers have seen against the log of a server that runs: no gap, no repeat, the same bytes at each number,
    /// one end; and one message for each key.
    pub(super) async fn check(&self, address: SocketAddr, histories: &[History], label: &str) {
        for history in histories {
            let url = format!("http://{address}/api/v1/messages/{}/events", history.id);
            let log = self.http.get(url).bearer_auth(KEY).send().await.unwrap().text().await.unwrap();
            let frames: BTreeMap<u64, String> = log
                .split_inclusive("\n\n")
                .filter_map(|frame| Some((frame_number(frame)?, frame.to_owned())))
                .collect();
            assert_eq!(history.frames, frames, "{label}, {}", history.id);
            assert_eq!(frames.values().filter(|frame| is_end(frame)).count(), 1, "{label}: {log}");
            assert!(is_end(frames.values().last().unwrap()), "{label}: {log}");
        }
        let ids: BTreeSet<&str> = histories.iter().map(|history| history.id.as_str()).collect();
        assert_eq!(ids.len(), histories.len(), "{label}: a message for each key");
    }
}

/// Request of a plain message.
pub(super) fn plain_request() -> Value {
    json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"})
}

fn is_end(frame: &str) -> bool {
    frame.contains("\nevent: completed\n") || frame.contains("\nevent: error\n")
}

fn frame_number(frame: &str) -> Option<u64> {
    frame.strip_prefix("id: ")?.lines().next()?.parse().ok()
}

/// Client that posts one message and follows it to its end.
struct Reader {
    http: reqwest::Client,
    addresses: Arc<Mutex<Vec<SocketAddr>>>,
    progress: Arc<watch::Sender<Progress>>,
    departure: watch::Receiver<u64>,
    random: Random,
}

impl Reader {
    async fn run(mut self, key: String, body: Value) -> History {
        let id = self.post(&key, &body.to_string()).await;
        self.progress.send_modify(|progress| progress.accepted += 1);
        let mut history = History { id, frames: BTreeMap::new() };
        while !history.has_end() {
            self.departure.mark_unchanged();
            let mut departure = self.departure.clone();
            tokio::select! {
                () = self.follow(&mut history) => {}
                _ = departure.changed() => {}
            }
        }
        history
    }

    /// Posts the message, again until a server accepts it.
    async fn post(&mut self, key: &str, body: &str) -> String {
        loop {
            let url = format!("http://{}/api/v1/messages", self.random.pick(&self.addresses));
            let request = self.http.post(url).bearer_auth(KEY).header("idempotency-key", key);
            let request = request.header("content-type", "application/json").body(body.to_owned());
            let answer = async {
                let answer = request.send().await.ok()?;
                let text = answer.text().await.ok()?;
                serde_json::from_str::<Value>(&text).ok()?["message_id"].as_str().map(str::to_owned)
            };
            if let Ok(Some(id)) = tokio::time::timeout(PATIENCE, answer).await {
                return id;
            }
            self.pause().await;
        }
    }

    /// Follows the message on one server, until it ends or the server does not answer.
    async fn follow(&mut self, history: &mut History) {
        let last = history.frames.keys().last().copied().unwrap_or(0);
        let address = self.random.pick(&self.addresses);
        let url = format!("http://{address}/api/v1/messages/{}/events", history.id);
        let request = self.http.get(url).bearer_auth(KEY).header("last-event-id", last.to_string());
        let answer = tokio::time::timeout(PATIENCE, request.send()).await;
        let Ok(Ok(mut answer)) = answer else { return self.pause().await };
        if answer.status() != 200 {
            return self.pause().await;
        }
        let mut buffer = Vec::new();
        while let Ok(Ok(Some(chunk))) = tokio::time::timeout(PATIENCE, answer.chunk()).await {
            buffer.extend_from_slice(&chunk);
            while let Some(end) = buffer.windows(2).position(|bytes| bytes == b"\n\n") {
                let frame = String::from_utf8(buffer.drain(..end + 2).collect()).unwrap();
                let Some(number) = frame_number(&frame) else { continue };
                let is_first_text = frame.contains("_delta")
                    && !history.frames.values().any(|frame| frame.contains("_delta"));
                if let Some(earlier) = history.frames.insert(number, frame.clone()) {
                    panic!("{}: entry {number} comes again: {earlier} {frame}", history.id);
                }
                self.progress.send_modify(|progress| {
                    progress.entries += 1;
                    progress.begun += usize::from(is_first_text);
                });
                if is_end(&frame) {
                    return;
                }
            }
        }
    }

    /// Waits for a moment before the next attempt.
    async fn pause(&mut self) {
        tokio::time::sleep(Duration::from_millis(20 + self.random.below(50))).await;
    }
}
