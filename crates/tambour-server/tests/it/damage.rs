//! A journal that is damaged, truncated, emptied or missing: nothing intact is lost, every loss is reported, and the server does
//! not start over it on its own.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tambour_server::store::{
    Batch, JournalLoss, JournalReport, Log as _, MessageRow, Messages as _, SqliteStore, Store as _,
    StoreError, StoreOptions,
};
use tambour_server::{Server, StartError};

use crate::client::{Event, Stream, check, message, names, numbered};
use crate::journal::begin;
use crate::mock::{Gate, Mock, Step, delta, finish};
use crate::server::{Folder, Tambour, config, within};
use crate::server_process::ServerProcess;

const MESSAGES: usize = 200;

fn id(n: usize) -> String {
    format!("msg_{n:03}")
}

fn row(n: usize) -> MessageRow {
    MessageRow {
        id: id(n),
        conversation_id: "conv".into(),
        status: "running".into(),
        request: format!("{{\"text\":\"question {n}\"}}"),
        ..MessageRow::default()
    }
}

fn batch(n: usize, first: u64) -> Batch {
    let mut batch = Batch::new(first);
    batch.push_raw(first, &format!("text {n} of entry {first}"));
    batch
}

/// Bytes of a journal left by a killed process; each message has two records of entries.
async fn journal() -> Vec<u8> {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.0.join("tambour.db"), false).await.unwrap();
    for n in 0..MESSAGES {
        let mut lease = begin(&store, &row(n)).await;
        for first in 1..=2 {
            lease.append(batch(n, first)).await.into_result().unwrap();
        }
    }
    let bytes = std::fs::read(segment(&folder.0.join("tambour.journal"))).unwrap();
    store.close().await;
    bytes
}

/// The only segment of a journal.
fn segment(journal: &Path) -> PathBuf {
    let files = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "log")).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.pop().unwrap()
}

/// Waits until the database has recorded the length of the journal, which happens in the background.
async fn until_known(database: &Path, journal: &Path) {
    let options = SqliteConnectOptions::new().filename(database).busy_timeout(Duration::from_secs(10));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    within(async {
        loop {
            let query = sqlx::query_scalar("select length from segments order by number desc limit 1");
            let known: Option<i64> = query.fetch_optional(&mut connection).await.unwrap();
            if known.map(i64::cast_unsigned) == Some(std::fs::metadata(segment(journal)).unwrap().len()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    connection.close().await.unwrap();
}

/// A folder with a journal of these bytes and no database.
fn with_journal(bytes: &[u8]) -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.join("tambour.journal")).unwrap();
    std::fs::write(folder.0.join("tambour.journal/0000000000000001.log"), bytes).unwrap();
    folder
}

async fn open(folder: &Folder, accept_loss: bool) -> Result<(SqliteStore, JournalReport), StoreError> {
    let options = StoreOptions { durable: false, accept_loss };
    crate::server::within(async {
        loop {
            // Background tasks of the previous store may hold it a moment longer.
            match SqliteStore::open_with(&folder.0.join("tambour.db"), options).await {
                Err(error) if error.to_string().contains("in use by another server") => {
                    tokio::task::yield_now().await;
                }
                opened => return opened,
            }
        }
    })
    .await
}

fn loss(opened: Result<(SqliteStore, JournalReport), StoreError>) -> JournalLoss {
    match opened {
        Err(StoreError::Loss(loss)) => *loss,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it has been opened"),
    }
}

fn damaged_files(journal: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|end| end == "damaged")).collect()
}

/// Ids of messages with missing entries.
async fn incomplete(store: &SqliteStore) -> BTreeSet<String> {
    let mut incomplete = BTreeSet::new();
    for n in 0..MESSAGES {
        let (batches, _) = store.read(&id(n), 0, 1 << 20).await.unwrap();
        let entries: Vec<String> =
            batches.iter().flat_map(Batch::entries).map(|entry| entry.json.to_owned()).collect();
        let whole = [format!("\"text {n} of entry 1\""), format!("\"text {n} of entry 2\"")];
        let is_whole = store.message(&id(n)).await.unwrap().is_some() && entries == whole;
        if !is_whole {
            incomplete.insert(id(n));
        }
    }
    incomplete
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_byte_costs_one_record_and_stops_the_start_until_the_loss_is_accepted() {
    let bytes = journal().await;
    let (mut named, mut unnamed) = (0, 0);
    for at in (12..bytes.len()).step_by(bytes.len() / 37) {
        let mut changed = bytes.clone();
        changed[at] ^= 0xff;
        let folder = with_journal(&changed);
        let journal = folder.0.join("tambour.journal");
        // Refused at every attempt, with the file unchanged.
        let told = loss(open(&folder, false).await);
        let told = if at % 2 == 0 { told } else { loss(open(&folder, false).await) };
        assert_eq!(std::fs::read(segment(&journal)).unwrap(), changed, "{at}");
        let said = told.to_string();
        for part in ["0000000000000001.log is damaged at byte ", "--accept-loss", "*.damaged"] {
            assert!(said.contains(part), "{at}: {said}");
        }
        let (store, report) = open(&folder, true).await.unwrap();
        let lost = incomplete(&store).await;
        assert_eq!(lost.len(), 1, "{at}: {lost:?}");
        let known: BTreeSet<String> =
            told.lost_messages.iter().chain(told.truncated_messages.keys()).cloned().collect();
        if told.unknown_records == 0 {
            assert_eq!(known, lost, "{at}: {said}");
            assert!(said.contains(lost.first().unwrap()), "{at}: {said}");
            named += 1;
        } else {
            assert!(told.unknown_records == 1 && known.is_subset(&lost), "{at}: {said}");
            unnamed += 1;
        }
        assert_eq!(report.damaged.len(), 1);
        let kept = damaged_files(&journal);
        assert_eq!(kept.len(), 1, "{at}");
        assert_eq!(std::fs::read(&kept[0]).unwrap(), changed, "{at}: kept as it was");
        store.close().await;
        // Reported once; the next start is normal.
        let (store, report) = open(&folder, false).await.unwrap();
        assert!(report.loss.is_empty() && report.damaged.is_empty());
        store.close().await;
    }
    assert!(named > 10 && unnamed > 3, "{named} {unnamed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_and_in_the_database_is_no_loss() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.0.join("tambour.db"), false).await.unwrap();
    let mut lease = begin(&store, &row(0)).await;
    lease.append(batch(0, 1)).await.into_result().unwrap();
    let mut bytes = std::fs::read(segment(&folder.0.join("tambour.journal"))).unwrap();
    store.close().await;
    let at = bytes.len() - 5;
    bytes[at] ^= 1;
    std::fs::write(folder.0.join("tambour.journal/0000000000000007.log"), &bytes).unwrap();
    let (store, report) = open(&folder, false).await.unwrap();
    assert!(report.loss.is_empty() && report.damaged.len() == 1, "{report:?}");
    assert_eq!(store.read(&id(0), 0, 1 << 20).await.unwrap().0.iter().flat_map(Batch::entries).count(), 1);
    assert_eq!(damaged_files(&folder.0.join("tambour.journal")).len(), 1);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_of_the_first_version_is_taken_over() {
    let mut bytes = b"tambour\n\x01\0\0\0".to_vec();
    let mut add = |kind: u8, payload: &[u8]| {
        let payload = [&[kind], payload].concat();
        bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&crc32(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
    };
    for n in 0..2 {
        add(b'M', &serde_json::to_vec(&row(n)).unwrap());
        for first in [1u64, 2] {
            let (id, batch) = (id(n), batch(n, first));
            let head = [&u32::try_from(id.len()).unwrap().to_le_bytes(), id.as_bytes()].concat();
            let numbers = [first.to_le_bytes(), first.to_le_bytes()].concat();
            add(b'E', &[&head, &numbers, batch.body()].concat());
        }
    }
    let folder = with_journal(&bytes);
    let (store, report) = open(&folder, false).await.unwrap();
    assert!(report.loss.is_empty());
    for n in 0..2 {
        assert!(!incomplete(&store).await.contains(&id(n)), "{n}");
    }
    store.close().await;
    // Damages the middle of the first message.
    let at = bytes.windows(9).position(|part| part == b"of entry ").unwrap();
    bytes[at] ^= 1;
    let folder = with_journal(&bytes);
    let told = loss(open(&folder, false).await);
    assert_eq!((told.unknown_records, told.truncated_messages.get(&id(0))), (1, Some(&0)), "{told}");
    let (store, _) = open(&folder, true).await.unwrap();
    assert!(!incomplete(&store).await.contains(&id(1)));
    store.close().await;
}

/// CRC-32 by its definition.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

/// Data of a killed server: a message that has ended, and one in the middle of its reply.
struct Left {
    folder: Folder,
    done: String,
    running: String,
    /// Number of the last event that the reader saw.
    seen: u64,
}

async fn killed() -> Left {
    let gate = Gate::new();
    let mut done = vec![delta("done")];
    done.extend(finish("stop"));
    let mut script: Vec<Step> = (0..10).map(|n| delta(&format!("piece {n}\n"))).collect();
    script.push(Step::Wait(gate));
    let mock = Mock::start(vec![done, script]).await;
    let server = Tambour::with(&mock).await;
    let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let done = message(&server.stream(&ask).await.whole().await);
    let mut stream = server.stream(&ask).await;
    let mut events = Vec::new();
    while !crate::client::text(&events, "final_delta").contains("piece 9") {
        events.push(stream.event().await.unwrap());
    }
    let seen = events.iter().filter_map(|event| event.id).max().unwrap();
    let data = server.folder.0.join("data");
    until_known(&data.join("tambour.sqlite"), &data.join("tambour.journal")).await;
    let folder = Folder::new();
    copy(&data, &folder.0.join("data"));
    drop(stream);
    Left { folder, done, running: message(&events), seen }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

impl Left {
    fn journal(&self) -> PathBuf {
        self.folder.0.join("data/tambour.journal")
    }

    /// Message of a start that refuses.
    async fn refused(&self) -> String {
        match Server::start(config(&self.folder)).await {
            Err(StartError::Store(error @ StoreError::Loss(_))) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it starts"),
        }
    }

    /// Starts, accepting the loss or with nothing to accept. The running message is ended, its reader is informed once, and the ended
    /// message is unchanged.
    async fn starts(self, accept_loss: bool) -> Tambour {
        let mut config = config(&self.folder);
        config.accept_loss = accept_loss;
        let server = Tambour::serve(self.folder, config).await;
        assert_eq!(server.ended(&self.done).await["reply"], "done");
        let events = server.follow(&self.running, &[]).await.whole().await;
        check(&events);
        assert_eq!(numbered(&events).last().unwrap().data["code"], "interrupted"); // J-035
        let last = numbered(&events).last().unwrap().id.unwrap();
        // A reader that has seen more than is left, or less.
        let mut back = server.follow(&self.running, &[("last-event-id", &self.seen.to_string())]).await;
        assert_eq!(back.status, 200);
        let rest = back.rest().await;
        assert_eq!(names(&rest).last(), Some(&"error"), "{rest:?}");
        assert_eq!(rest.iter().filter(|event| event.name == "error").count(), 1);
        // A reader that resumes from that number has seen the end.
        assert_eq!(numbered(&rest).last().unwrap().id, Some(last));
        assert_eq!(server.follow(&self.running, &[("last-event-id", &last.to_string())]).await.status, 204);
        server
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_refuses_to_start_over_a_damaged_journal() {
    let left = killed().await;
    let file = segment(&left.journal());
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(7).position(|part| part == b"piece 2").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let said = left.refused().await;
    for part in [file.to_str().unwrap(), &left.running, "is cut off", "behind event ", "--accept-loss"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains(&left.done), "{said}");
    let server = left.starts(true).await;
    assert_eq!(server.metric("tambour_journal_damaged_records_total").await, 1);
    assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 1);
    let folder = server.stopped().await;
    assert_eq!(damaged_files(&folder.0.join("data/tambour.journal")).len(), 1);
    // The next start has nothing to accept.
    let again = config(&folder);
    let server = Tambour::serve(folder, again).await;
    assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_is_gone_or_empty_or_cut_off_says_so() {
    // Remaining bytes of the file.
    for (says, left_over) in [("is gone, which had", None), ("has 0 of ", Some(0)), ("has 12 of ", Some(12))]
    {
        let left = killed().await;
        let file = segment(&left.journal());
        match left_over {
            None => std::fs::remove_file(&file).unwrap(),
            Some(bytes) => std::fs::write(&file, &std::fs::read(&file).unwrap()[..bytes]).unwrap(),
        }
        let said = left.refused().await;
        for part in [says, &left.running, "1 message is perhaps cut off", "--accept-loss"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let server = left.starts(true).await;
        assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_record_at_the_end_is_no_damage() {
    let left = killed().await;
    let file = segment(&left.journal());
    let bytes = std::fs::read(&file).unwrap();
    // The beginning of a record after everything the database has recorded.
    std::fs::write(&file, [&bytes, &bytes[12..20]].concat()).unwrap();
    let server = left.starts(false).await;
    assert_eq!(server.metric("tambour_journal_damaged_records_total").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_was_whole_and_is_cut_off_is_a_loss() {
    for cut in [1, 4, 30] {
        let left = killed().await;
        let file = segment(&left.journal());
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - cut]).unwrap();
        let said = left.refused().await;
        for part in [&left.running, "cut off", "--accept-loss"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let server = left.starts(true).await;
        assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 1);
    }
}

/// Step between the lengths of the cuts, in bytes; a prime, so that records are cut at all of their positions.
const STEP: usize = 401;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_cut_to_any_length_below_what_the_database_knows_is_told() {
    let left = Folder::new();
    let store = SqliteStore::open(&left.0.join("tambour.db"), false).await.unwrap();
    let mut leases = Vec::new();
    for n in 0..MESSAGES {
        let mut lease = begin(&store, &row(n)).await;
        lease.append(batch(n, 1)).await.into_result().unwrap();
        leases.push(lease);
    }
    for (n, lease) in leases.iter_mut().enumerate() {
        lease.append(batch(n, 2)).await.into_result().unwrap();
    }
    until_known(&left.0.join("tambour.db"), &left.0.join("tambour.journal")).await;
    let killed = Folder::new();
    copy(&left.0, &killed.0.join("data"));
    store.close().await;
    let file = segment(&killed.0.join("data/tambour.journal"));
    let bytes = std::fs::read(&file).unwrap();
    let mut refused = 0;
    for length in (0..bytes.len()).step_by(STEP).chain([bytes.len() - 1]) {
        let folder = Folder::new();
        std::fs::remove_dir(&folder.0).unwrap();
        copy(&killed.0.join("data"), &folder.0);
        std::fs::write(segment(&folder.0.join("tambour.journal")), &bytes[..length]).unwrap();
        let told = loss(open(&folder, false).await);
        assert!(!told.short.is_empty() && told.to_string().contains("--accept-loss"), "{length}: {told}");
        refused += 1;
        if refused % 8 == 1 {
            // Only the truncated part is gone.
            let (store, _) = open(&folder, true).await.unwrap();
            let lost = incomplete(&store).await;
            let told: BTreeSet<String> = told
                .lost_messages
                .iter()
                .chain(told.truncated_messages.keys())
                .chain(&told.unfinished_messages)
                .cloned()
                .collect();
            assert!(lost.is_subset(&told), "{length}: {lost:?}");
            let there = bytes[..length].windows(10).filter(|part| *part == b"of entry 2").count();
            assert!(
                lost.len() >= MESSAGES - there && lost.len() <= MESSAGES - there + 1,
                "{length}: {}",
                lost.len()
            );
            store.close().await;
        }
    }
    // A complete journal reports no loss.
    let folder = Folder::new();
    std::fs::remove_dir(&folder.0).unwrap();
    copy(&killed.0.join("data"), &folder.0);
    let (store, report) = open(&folder, false).await.unwrap();
    assert!(report.loss.is_empty() && incomplete(&store).await.is_empty(), "{report:?}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_without_its_database_ends_its_messages_as_after_a_crash() {
    let left = killed().await;
    for name in ["tambour.sqlite", "tambour.sqlite-wal"] {
        std::fs::remove_file(left.folder.0.join("data").join(name)).unwrap();
    }
    left.starts(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_at_any_time_loses_nothing_that_was_seen() {
    let pieces: Vec<Step> = (0..40).map(|n| delta(&format!("piece {n}\n"))).chain(finish("stop")).collect();
    // Killed with the first events, in the middle, and when some or most messages have ended.
    for (events, ends) in [(1, 0), (300, 0), (0, 1), (0, 60), (0, 140), (0, 190)] {
        let mock = Mock::start(vec![pieces.clone(); MESSAGES]).await;
        let apart = ServerProcess::start(&mock, false);
        let ask = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true});
        let seen: Arc<[Mutex<Vec<Event>>]> = (0..MESSAGES).map(|_| Mutex::default()).collect();
        let mut readers = tokio::task::JoinSet::new();
        for n in 0..MESSAGES {
            let (address, ask, seen) = (apart.server.address, ask.to_string(), seen.clone());
            readers.spawn(async move {
                // A message that is killed before its answer fails here, and has shown nothing.
                let mut stream = Stream::open(address, "POST", "/api/v1/messages", &[], Some(&ask)).await;
                while let Some(event) = stream.event_or_cut().await {
                    seen[n].lock().unwrap().push(event);
                }
            });
        }
        let count =
            |of: &dyn Fn(&[Event]) -> usize| seen.iter().map(|seen| of(&seen.lock().unwrap())).sum::<usize>();
        let ended = |events: &[Event]| usize::from(events.iter().any(|event| event.name == "completed"));
        within(async {
            while count(&|events: &[Event]| events.len()) < events || count(&ended) < ends {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        let folder = apart.killed();
        while readers.join_next().await.is_some() {}
        let again = config(&folder);
        let server = Tambour::serve(folder, again).await;
        for seen in seen.iter().map(|seen| numbered(&seen.lock().unwrap())).filter(|seen| !seen.is_empty()) {
            let id = message(&seen);
            let events = server.follow(&id, &[]).await.whole().await;
            let all = numbered(&events);
            assert!(seen.len() <= all.len(), "{id}: events are lost");
            assert_eq!(all[..seen.len()], seen, "{id}: what was seen is there"); // J-036
        }
        assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 0);
        drop(server.stopped().await);
    }
}
