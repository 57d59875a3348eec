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

use crate::client::{Event, EventStream, check_stream, event_names, numbered_events, stream_message_id};
use crate::journal::begin;
use crate::mock::{Gate, MockServer, Step, delta_step, finish_steps};
use crate::server::{Folder, TestServer, test_config, with_timeout};
use crate::server_process::ServerProcess;

const MESSAGES: usize = 200;

fn message_id(n: usize) -> String {
    format!("msg_{n:03}")
}

fn message_row(n: usize) -> MessageRow {
    MessageRow {
        id: message_id(n),
        conversation_id: "conv".into(),
        status: "running".into(),
        request: format!("{{\"text\":\"question {n}\"}}"),
        ..MessageRow::default()
    }
}

fn message_batch(n: usize, first: u64) -> Batch {
    let mut batch = Batch::new(first);
    batch.push_raw(first, &format!("text {n} of entry {first}"));
    batch
}

/// Bytes of a journal left by a killed process; each message has two records of entries.
async fn journal_bytes() -> Vec<u8> {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.0.join("tambour.db"), false).await.unwrap();
    for n in 0..MESSAGES {
        let mut lease = begin(&store, &message_row(n)).await;
        for first in 1..=2 {
            lease.append(message_batch(n, first)).await.into_result().unwrap();
        }
    }
    let bytes = std::fs::read(segment_file(&folder.0.join("tambour.journal"))).unwrap();
    store.close().await;
    bytes
}

/// The only segment of a journal.
fn segment_file(journal: &Path) -> PathBuf {
    let files = std::fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "log")).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    logs.pop().unwrap()
}

/// Waits until the database has recorded the length of the journal, which happens in the background.
async fn wait_until_recorded(database: &Path, journal: &Path) {
    let options = SqliteConnectOptions::new().filename(database).busy_timeout(Duration::from_secs(10));
    let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
    with_timeout(async {
        loop {
            let query = sqlx::query_scalar("select length from segments order by number desc limit 1");
            let recorded_length: Option<i64> = query.fetch_optional(&mut connection).await.unwrap();
            if recorded_length.map(i64::cast_unsigned)
                == Some(std::fs::metadata(segment_file(journal)).unwrap().len())
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    connection.close().await.unwrap();
}

/// A folder with a journal of these bytes and no database.
fn folder_with_journal(bytes: &[u8]) -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.0.join("tambour.journal")).unwrap();
    std::fs::write(folder.0.join("tambour.journal/0000000000000001.log"), bytes).unwrap();
    folder
}

async fn open_store(folder: &Folder, accept_loss: bool) -> Result<(SqliteStore, JournalReport), StoreError> {
    let options = StoreOptions { durable: false, accept_loss };
    crate::server::with_timeout(async {
        loop {
            // Background tasks of the previous store may hold it a moment longer.
            match SqliteStore::open_with(&folder.0.join("tambour.db"), options).await {
                Err(error) if error.to_string().contains("in use by another server") => {
                    tokio::task::yield_now().await;
                }
                result => return result,
            }
        }
    })
    .await
}

fn expect_loss(result: Result<(SqliteStore, JournalReport), StoreError>) -> JournalLoss {
    match result {
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
async fn incomplete_messages(store: &SqliteStore) -> BTreeSet<String> {
    let mut incomplete = BTreeSet::new();
    for n in 0..MESSAGES {
        let (batches, _) = store.read(&message_id(n), 0, 1 << 20).await.unwrap();
        let entries: Vec<String> =
            batches.iter().flat_map(Batch::entries).map(|entry| entry.json.to_owned()).collect();
        let expected_entries = [format!("\"text {n} of entry 1\""), format!("\"text {n} of entry 2\"")];
        let is_complete =
            store.message(&message_id(n)).await.unwrap().is_some() && entries == expected_entries;
        if !is_complete {
            incomplete.insert(message_id(n));
        }
    }
    incomplete
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_byte_costs_one_record_and_stops_the_start_until_the_loss_is_accepted() {
    let bytes = journal_bytes().await;
    let (mut named_losses, mut unnamed_losses) = (0, 0);
    for at in (12..bytes.len()).step_by(bytes.len() / 37) {
        let mut changed_bytes = bytes.clone();
        changed_bytes[at] ^= 0xff;
        let folder = folder_with_journal(&changed_bytes);
        let journal = folder.0.join("tambour.journal");
        // Refused, as often as it is tried, with the file as it was.
        let reported_loss = expect_loss(open_store(&folder, false).await);
        let reported_loss =
            if at % 2 == 0 { reported_loss } else { expect_loss(open_store(&folder, false).await) };
        assert_eq!(std::fs::read(segment_file(&journal)).unwrap(), changed_bytes, "{at}");
        let message = reported_loss.to_string();
        for part in ["0000000000000001.log is damaged at byte ", "--accept-loss", "*.damaged"] {
            assert!(message.contains(part), "{at}: {message}");
        }
        let (store, report) = open_store(&folder, true).await.unwrap();
        let lost_messages = incomplete_messages(&store).await;
        assert_eq!(lost_messages.len(), 1, "{at}: {lost_messages:?}");
        let reported_ids: BTreeSet<String> = reported_loss
            .lost_messages
            .iter()
            .chain(reported_loss.truncated_messages.keys())
            .cloned()
            .collect();
        if reported_loss.unknown_records == 0 {
            assert_eq!(reported_ids, lost_messages, "{at}: {message}");
            assert!(message.contains(lost_messages.first().unwrap()), "{at}: {message}");
            named_losses += 1;
        } else {
            assert!(
                reported_loss.unknown_records == 1 && reported_ids.is_subset(&lost_messages),
                "{at}: {message}"
            );
            unnamed_losses += 1;
        }
        assert_eq!(report.damaged.len(), 1);
        let damaged_copies = damaged_files(&journal);
        assert_eq!(damaged_copies.len(), 1, "{at}");
        assert_eq!(std::fs::read(&damaged_copies[0]).unwrap(), changed_bytes, "{at}: kept as it was");
        store.close().await;
        // Reported once; the next start is normal.
        let (store, report) = open_store(&folder, false).await.unwrap();
        assert!(report.loss.is_empty() && report.damaged.is_empty());
        store.close().await;
    }
    assert!(named_losses > 10 && unnamed_losses > 3, "{named_losses} {unnamed_losses}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_and_in_the_database_is_no_loss() {
    let folder = Folder::new();
    let store = SqliteStore::open(&folder.0.join("tambour.db"), false).await.unwrap();
    let mut lease = begin(&store, &message_row(0)).await;
    lease.append(message_batch(0, 1)).await.into_result().unwrap();
    let mut bytes = std::fs::read(segment_file(&folder.0.join("tambour.journal"))).unwrap();
    store.close().await;
    let at = bytes.len() - 5;
    bytes[at] ^= 1;
    std::fs::write(folder.0.join("tambour.journal/0000000000000007.log"), &bytes).unwrap();
    let (store, report) = open_store(&folder, false).await.unwrap();
    assert!(report.loss.is_empty() && report.damaged.len() == 1, "{report:?}");
    assert_eq!(
        store.read(&message_id(0), 0, 1 << 20).await.unwrap().0.iter().flat_map(Batch::entries).count(),
        1
    );
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
        add(b'M', &serde_json::to_vec(&message_row(n)).unwrap());
        for first in [1u64, 2] {
            let (id, batch) = (message_id(n), message_batch(n, first));
            let head = [&u32::try_from(id.len()).unwrap().to_le_bytes(), id.as_bytes()].concat();
            let numbers = [first.to_le_bytes(), first.to_le_bytes()].concat();
            add(b'E', &[&head, &numbers, batch.body()].concat());
        }
    }
    let folder = folder_with_journal(&bytes);
    let (store, report) = open_store(&folder, false).await.unwrap();
    assert!(report.loss.is_empty());
    for n in 0..2 {
        assert!(!incomplete_messages(&store).await.contains(&message_id(n)), "{n}");
    }
    store.close().await;
    // Damages the middle of the first message.
    let at = bytes.windows(9).position(|part| part == b"of entry ").unwrap();
    bytes[at] ^= 1;
    let folder = folder_with_journal(&bytes);
    let reported_loss = expect_loss(open_store(&folder, false).await);
    assert_eq!(
        (reported_loss.unknown_records, reported_loss.truncated_messages.get(&message_id(0))),
        (1, Some(&0)),
        "{reported_loss}"
    );
    let (store, _) = open_store(&folder, true).await.unwrap();
    assert!(!incomplete_messages(&store).await.contains(&message_id(1)));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_of_a_later_version_is_refused_and_not_changed() {
    let bytes = b"tambour\n\x03\0\0\0 something else";
    let folder = folder_with_journal(bytes);
    let error = open_store(&folder, true).await.err().unwrap();
    assert!(matches!(error, StoreError::LaterJournal(_)), "{error}");
    let message = error.to_string();
    assert!(
        message.starts_with("the journal file ") && message.contains("0000000000000001.log"),
        "{message}"
    );
    assert_eq!(std::fs::read(segment_file(&folder.0.join("tambour.journal"))).unwrap(), bytes);
}

/// CRC-32 by its definition.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
    })
}

/// Data of a killed server: a message that has ended, and one in the middle of its reply.
struct KilledServer {
    folder: Folder,
    completed: String,
    running: String,
    /// Number of the last event that the reader saw.
    last_seen: u64,
}

async fn kill_server() -> KilledServer {
    let gate = Gate::new();
    let mut completed = vec![delta_step("done")];
    completed.extend(finish_steps("stop"));
    let mut script: Vec<Step> = (0..10).map(|n| delta_step(&format!("piece {n}\n"))).collect();
    script.push(Step::Wait(gate));
    let mock = MockServer::start(vec![completed, script]).await;
    let server = TestServer::start_default(&mock).await;
    let request = json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1"});
    let completed = stream_message_id(&server.open_stream(&request).await.read_checked().await);
    let mut stream = server.open_stream(&request).await;
    let mut events = Vec::new();
    while !crate::client::joined_text(&events, "final_delta").contains("piece 9") {
        events.push(stream.next_event().await.unwrap());
    }
    let last_seen = events.iter().filter_map(|event| event.id).max().unwrap();
    let data = server.folder.0.join("data");
    wait_until_recorded(&data.join("tambour.sqlite"), &data.join("tambour.journal")).await;
    let folder = Folder::new();
    copy_files(&data, &folder.0.join("data"));
    drop(stream);
    KilledServer { folder, completed, running: stream_message_id(&events), last_seen }
}

fn copy_files(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_files(&entry.path(), &to);
        } else if !entry.file_name().to_string_lossy().ends_with("-shm") {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

impl KilledServer {
    fn journal_folder(&self) -> PathBuf {
        self.folder.0.join("data/tambour.journal")
    }

    /// Message of a start that refuses.
    async fn start_error(&self) -> String {
        match Server::start(test_config(&self.folder)).await {
            Err(StartError::Store(error @ StoreError::Loss(_))) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it starts"),
        }
    }

    /// Starts, accepting the loss or with nothing to accept. The running message is ended, its reader is informed once, and the ended
    /// message is unchanged.
    async fn start(self, accept_loss: bool) -> TestServer {
        let mut config = test_config(&self.folder);
        config.accept_loss = accept_loss;
        let server = TestServer::serve(self.folder, config).await;
        assert_eq!(server.wait_ended(&self.completed).await["reply"], "done");
        let events = server.follow(&self.running, &[]).await.read_checked().await;
        check_stream(&events);
        assert_eq!(numbered_events(&events).last().unwrap().data["code"], "interrupted"); // J-035
        let last = numbered_events(&events).last().unwrap().id.unwrap();
        // A reader that has seen more than there is, or less.
        let mut reader =
            server.follow(&self.running, &[("last-event-id", &self.last_seen.to_string())]).await;
        assert_eq!(reader.status, 200);
        let rest = reader.read_rest().await;
        assert_eq!(event_names(&rest).last(), Some(&"error"), "{rest:?}");
        assert_eq!(rest.iter().filter(|event| event.name == "error").count(), 1);
        // A reader that resumes from that number has seen the end.
        assert_eq!(numbered_events(&rest).last().unwrap().id, Some(last));
        assert_eq!(server.follow(&self.running, &[("last-event-id", &last.to_string())]).await.status, 204);
        server
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_refuses_to_start_over_a_damaged_journal() {
    let killed_server = kill_server().await;
    let file = segment_file(&killed_server.journal_folder());
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(7).position(|part| part == b"piece 2").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let message = killed_server.start_error().await;
    for part in
        [file.to_str().unwrap(), &killed_server.running, "is cut off", "after event ", "--accept-loss"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(!message.contains(&killed_server.completed), "{message}");
    let server = killed_server.start(true).await;
    assert_eq!(server.metric("tambour_journal_damaged_records_total").await, 1);
    assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 1);
    let folder = server.stop().await;
    assert_eq!(damaged_files(&folder.0.join("data/tambour.journal")).len(), 1);
    // The next start has nothing to accept.
    let next_config = test_config(&folder);
    let server = TestServer::serve(folder, next_config).await;
    assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_that_is_gone_or_empty_or_cut_off_says_so() {
    // Bytes that are left of the file.
    for (expected_text, remaining_bytes) in
        [("is missing, which had", None), ("has 0 of ", Some(0)), ("has 12 of ", Some(12))]
    {
        let killed_server = kill_server().await;
        let file = segment_file(&killed_server.journal_folder());
        match remaining_bytes {
            None => std::fs::remove_file(&file).unwrap(),
            Some(bytes) => std::fs::write(&file, &std::fs::read(&file).unwrap()[..bytes]).unwrap(),
        }
        let message = killed_server.start_error().await;
        for part in [expected_text, &killed_server.running, "1 message is possibly cut off", "--accept-loss"]
        {
            assert!(message.contains(part), "{part}: {message}");
        }
        let server = killed_server.start(true).await;
        assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_torn_record_at_the_end_is_no_damage() {
    let killed_server = kill_server().await;
    let file = segment_file(&killed_server.journal_folder());
    let bytes = std::fs::read(&file).unwrap();
    // The beginning of a record after everything the database has recorded.
    std::fs::write(&file, [&bytes, &bytes[12..20]].concat()).unwrap();
    let server = killed_server.start(false).await;
    assert_eq!(server.metric("tambour_journal_damaged_records_total").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_was_whole_and_is_cut_off_is_a_loss() {
    for cut in [1, 4, 30] {
        let killed_server = kill_server().await;
        let file = segment_file(&killed_server.journal_folder());
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - cut]).unwrap();
        let message = killed_server.start_error().await;
        for part in [&killed_server.running, "cut off", "--accept-loss"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let server = killed_server.start(true).await;
        assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 1);
    }
}

/// Step between the lengths of the cuts, in bytes; a prime, so that records are cut at all of their positions.
const CUT_STEP: usize = 401;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_cut_to_any_length_below_what_the_database_knows_is_told() {
    let source_folder = Folder::new();
    let store = SqliteStore::open(&source_folder.0.join("tambour.db"), false).await.unwrap();
    let mut leases = Vec::new();
    for n in 0..MESSAGES {
        let mut lease = begin(&store, &message_row(n)).await;
        lease.append(message_batch(n, 1)).await.into_result().unwrap();
        leases.push(lease);
    }
    for (n, lease) in leases.iter_mut().enumerate() {
        lease.append(message_batch(n, 2)).await.into_result().unwrap();
    }
    wait_until_recorded(&source_folder.0.join("tambour.db"), &source_folder.0.join("tambour.journal")).await;
    let killed_folder = Folder::new();
    copy_files(&source_folder.0, &killed_folder.0.join("data"));
    store.close().await;
    let file = segment_file(&killed_folder.0.join("data/tambour.journal"));
    let bytes = std::fs::read(&file).unwrap();
    let mut refusals = 0;
    for length in (0..bytes.len()).step_by(CUT_STEP).chain([bytes.len() - 1]) {
        let folder = Folder::new();
        std::fs::remove_dir(&folder.0).unwrap();
        copy_files(&killed_folder.0.join("data"), &folder.0);
        std::fs::write(segment_file(&folder.0.join("tambour.journal")), &bytes[..length]).unwrap();
        let reported_loss = expect_loss(open_store(&folder, false).await);
        assert!(
            !reported_loss.short.is_empty() && reported_loss.to_string().contains("--accept-loss"),
            "{length}: {reported_loss}"
        );
        refusals += 1;
        if refusals % 8 == 1 {
            // Only the part that was cut off is gone.
            let (store, _) = open_store(&folder, true).await.unwrap();
            let lost_messages = incomplete_messages(&store).await;
            let reported_loss: BTreeSet<String> = reported_loss
                .lost_messages
                .iter()
                .chain(reported_loss.truncated_messages.keys())
                .chain(&reported_loss.unfinished_messages)
                .cloned()
                .collect();
            assert!(lost_messages.is_subset(&reported_loss), "{length}: {lost_messages:?}");
            let intact_entries = bytes[..length].windows(10).filter(|part| *part == b"of entry 2").count();
            assert!(
                lost_messages.len() >= MESSAGES - intact_entries
                    && lost_messages.len() <= MESSAGES - intact_entries + 1,
                "{length}: {}",
                lost_messages.len()
            );
            store.close().await;
        }
    }
    // A complete journal reports no loss.
    let folder = Folder::new();
    std::fs::remove_dir(&folder.0).unwrap();
    copy_files(&killed_folder.0.join("data"), &folder.0);
    let (store, report) = open_store(&folder, false).await.unwrap();
    assert!(report.loss.is_empty() && incomplete_messages(&store).await.is_empty(), "{report:?}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_without_its_database_ends_its_messages_as_after_a_crash() {
    let killed_server = kill_server().await;
    for name in ["tambour.sqlite", "tambour.sqlite-wal"] {
        std::fs::remove_file(killed_server.folder.0.join("data").join(name)).unwrap();
    }
    killed_server.start(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_at_any_time_loses_nothing_that_was_seen() {
    let pieces: Vec<Step> =
        (0..40).map(|n| delta_step(&format!("piece {n}\n"))).chain(finish_steps("stop")).collect();
    // With the first events, in the middle, and when some or most messages have ended.
    for (events, ends) in [(1, 0), (300, 0), (0, 1), (0, 60), (0, 140), (0, 190)] {
        let mock = MockServer::start(vec![pieces.clone(); MESSAGES]).await;
        let process = ServerProcess::start(&mock, false);
        let request =
            json!({"text": "x", "dialect": "plain", "output_protocol": "jsonseq_v1", "stream": true});
        let seen_events: Arc<[Mutex<Vec<Event>>]> = (0..MESSAGES).map(|_| Mutex::default()).collect();
        let mut readers = tokio::task::JoinSet::new();
        for n in 0..MESSAGES {
            let (address, request, seen_events) =
                (process.server.address, request.to_string(), seen_events.clone());
            readers.spawn(async move {
                // One that is killed before it has answered fails here, and has shown nothing.
                let mut stream =
                    EventStream::open(address, "POST", "/api/v1/messages", &[], Some(&request)).await;
                while let Some(event) = stream.next_event_or_cut().await {
                    seen_events[n].lock().unwrap().push(event);
                }
            });
        }
        let count = |measure: &dyn Fn(&[Event]) -> usize| {
            seen_events.iter().map(|seen_events| measure(&seen_events.lock().unwrap())).sum::<usize>()
        };
        let count_ends = |events: &[Event]| usize::from(events.iter().any(|event| event.name == "completed"));
        with_timeout(async {
            while count(&|events: &[Event]| events.len()) < events || count(&count_ends) < ends {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        let folder = process.kill();
        while readers.join_next().await.is_some() {}
        let next_config = test_config(&folder);
        let server = TestServer::serve(folder, next_config).await;
        for seen_events in seen_events
            .iter()
            .map(|seen_events| numbered_events(&seen_events.lock().unwrap()))
            .filter(|seen_events| !seen_events.is_empty())
        {
            let id = stream_message_id(&seen_events);
            let events = server.follow(&id, &[]).await.read_checked().await;
            let all = numbered_events(&events);
            assert!(seen_events.len() <= all.len(), "{id}: events are lost");
            assert_eq!(all[..seen_events.len()], seen_events, "{id}: what was seen is there"); // J-036
        }
        assert_eq!(server.metric("tambour_journal_lost_messages_total").await, 0);
        drop(server.stop().await);
    }
}
