//! The journal alone: its contents when a process dies, when a file is damaged, and in older databases.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::StreamExt as _;
use serde_json::json;
use tambour_server::store::{
    Batch, BeginOutcome, Lease, Log, MessageOutcome, MessageRow, Messages as _, NewRun, PendingAppend,
    RunEnd, SqliteStore, Store as _, WriteOutcome,
};

use crate::child_process::{child_arguments, child_command, die_at, run_async, run_child, run_passing_child};
use crate::server::{Folder, with_timeout};

/// Entries of one batch, and batches of one message.
const ENTRIES: u64 = 500;
const BATCHES: u64 = 500;
const MESSAGES: u64 = 4;

fn row(n: u64) -> MessageRow {
    MessageRow {
        id: format!("msg_{n}"),
        conversation_id: "conv".into(),
        status: "running".into(),
        request: "{}".into(),
        ..MessageRow::default()
    }
}

/// Begins a message in a conversation of its own, or in one of another test.
pub(crate) async fn begin(store: &dyn Log, row: &MessageRow) -> Box<dyn Lease> {
    let new = NewRun { row: row.clone(), opens_conversation: true, ..NewRun::default() };
    let BeginOutcome::Started { lease, durable } = store.begin(new).await.unwrap() else {
        panic!("it begins")
    };
    assert_eq!(durable.await, WriteOutcome::Stored);
    lease
}

fn batch(first: u64) -> Batch {
    let mut batch = Batch::new(first);
    (first..first + ENTRIES).for_each(|number| batch.push_raw(number, &format!("entry {number}")));
    batch
}

/// Number of entries of a message, each checked against the one written.
async fn count_entries(store: &SqliteStore, id: &str) -> u64 {
    let mut last = 0;
    loop {
        let (batches, _) = store.read(id, last, 1 << 20).await.unwrap();
        if batches.is_empty() {
            return last;
        }
        for entry in batches.iter().flat_map(Batch::entries) {
            assert_eq!(entry.number, last + 1, "{id}: no gaps");
            assert_eq!(entry.json, format!("\"entry {}\"", entry.number), "{id}");
            last += 1;
        }
    }
}

/// Folder in which a child works.
fn child_folder() -> PathBuf {
    child_arguments().as_str().unwrap().into()
}

/// Not a test: the dying process.
#[test]
#[ignore = "the test below runs it"]
fn child() {
    let folder = child_folder();
    die_at(MESSAGES * BATCHES - 7, |point| point == "log.amid");
    run_async(async {
        let store = SqliteStore::open(&folder.join("tambour.db"), false).await.unwrap();
        let mut leases = Vec::new();
        for n in 0..MESSAGES {
            leases.push(begin(&store, &row(n)).await);
        }
        for at in 0..BATCHES {
            for lease in &mut leases {
                lease.append(batch(at * ENTRIES + 1)).await.into_result().unwrap();
            }
        }
    });
    unreachable!("it has died before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_entries_survive_a_process_that_dies_in_the_middle_of_one() {
    let folder = Folder::new();
    let arguments = json!(folder.0);
    let report = tokio::task::spawn_blocking(move || run_child("journal::child", &arguments));
    assert_eq!(report.await.unwrap().death.as_deref(), Some("log.amid"));
    let store = SqliteStore::open(&folder.0.join("tambour.db"), false).await.unwrap();
    let mut all = 0;
    for n in 0..MESSAGES {
        assert!(store.message(&format!("msg_{n}")).await.unwrap().is_some());
        let entries = count_entries(&store, &format!("msg_{n}")).await;
        assert_eq!(entries % ENTRIES, 0, "a batch is there whole or not at all");
        all += entries;
    }
    // Four records are those of the messages.
    assert_eq!(all, (MESSAGES * BATCHES - 7 - MESSAGES - 1) * ENTRIES);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_ends_the_journal_and_nothing_before_it() {
    let folder = Folder::new();
    let file = folder.0.join("tambour.db");
    let store = SqliteStore::open(&file, false).await.unwrap();
    let mut lease = begin(&store, &row(0)).await;
    lease.append(batch(1)).await.into_result().unwrap();
    lease.append(batch(ENTRIES + 1)).await.into_result().unwrap();
    // The present journal, with a byte of the last record flipped, beside an empty database.
    let journal = folder.0.join("tambour.journal");
    let segment = std::fs::read_dir(&journal).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&segment).unwrap();
    store.close().await;
    assert_eq!(std::fs::read_dir(&journal).unwrap().count(), 1, "what the database has is removed");
    let offset = bytes.len() - 20;
    bytes[offset] ^= 1;
    let other = Folder::new();
    std::fs::create_dir(other.0.join("tambour.journal")).unwrap();
    std::fs::write(other.0.join("tambour.journal/0000000000000007.log"), &bytes).unwrap();
    let store = SqliteStore::open(&other.0.join("tambour.db"), false).await.unwrap();
    assert_eq!(store.message("msg_0").await.unwrap().unwrap().status, "running");
    assert_eq!(count_entries(&store, "msg_0").await, ENTRIES);
    // Writing continues after the last intact entry.
    let mut lease = store.claim("msg_0").await.unwrap().unwrap();
    assert_eq!(lease.next_number(), ENTRIES + 1);
    lease.append(batch(ENTRIES + 1)).await.into_result().unwrap();
    assert_eq!(count_entries(&store, "msg_0").await, 2 * ENTRIES);
    store.close().await;
    // Opened once more, without duplicates.
    let store = SqliteStore::open(&other.0.join("tambour.db"), false).await.unwrap();
    assert_eq!(count_entries(&store, "msg_0").await, 2 * ENTRIES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_the_database_has_in_part_is_completed() {
    let (folder, other) = (Folder::new(), Folder::new());
    let journal = |folder: &Folder| folder.0.join("tambour.journal");
    let file = |folder: &Folder| folder.0.join("tambour.db");
    let store = SqliteStore::open(&file(&folder), false).await.unwrap();
    let mut lease = begin(&store, &row(0)).await;
    lease.append(batch(1)).await.into_result().unwrap();
    lease.append(batch(ENTRIES + 1)).await.into_result().unwrap();
    // A copy of the journal, before it is removed.
    let segment = std::fs::read_dir(journal(&folder)).unwrap().next().unwrap().unwrap();
    let segment_bytes = std::fs::read(segment.path()).unwrap();
    lease.append(batch(2 * ENTRIES + 1)).await.into_result().unwrap();
    store.close().await;
    // A database with more entries than the journal.
    std::fs::write(journal(&folder).join("0000000000000009.log"), &segment_bytes).unwrap();
    let store = SqliteStore::open(&file(&folder), false).await.unwrap();
    assert_eq!(count_entries(&store, "msg_0").await, 3 * ENTRIES);
    store.close().await;
    // A journal that ends in the middle of a record.
    let store = SqliteStore::open(&file(&other), false).await.unwrap();
    let mut lease = begin(&store, &row(0)).await;
    let mut first_batch = Batch::new(1);
    (1..=ENTRIES + 3).for_each(|number| first_batch.push_raw(number, &format!("entry {number}")));
    lease.append(first_batch).await.into_result().unwrap();
    store.close().await;
    std::fs::write(journal(&other).join("0000000000000009.log"), &segment_bytes).unwrap();
    let store = SqliteStore::open(&file(&other), false).await.unwrap();
    assert_eq!(count_entries(&store, "msg_0").await, 2 * ENTRIES);
    store.close().await;
}

/// Writes to refuse in a row, and whether truncating their remains is refused, too.
static WRITES_TO_REFUSE: AtomicU64 = AtomicU64::new(0);
static REFUSES_TRUNCATION: AtomicBool = AtomicBool::new(false);
/// Number of refusals.
static REFUSALS: AtomicU64 = AtomicU64::new(0);

fn refuse_write(place: &'static str) -> std::io::Result<()> {
    let decrement = |decrement: u64| decrement.checked_sub(1);
    let is_refused = match place {
        "log.write" => WRITES_TO_REFUSE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, decrement).is_ok(),
        "log.cut" => REFUSES_TRUNCATION.swap(false, Ordering::SeqCst),
        _ => false,
    };
    REFUSALS.fetch_add(u64::from(is_refused), Ordering::SeqCst);
    if is_refused { Err(std::io::Error::from_raw_os_error(28)) } else { Ok(()) }
}

/// Not a test: the process whose system refuses writes.
#[test]
#[ignore = "the test below runs it"]
fn refused_child() {
    let folder = child_folder();
    // A record is written in two halves, so that the first half of a refused write is in the file.
    tambour_server::fail::arm(|_| ());
    tambour_server::fail::arm_faults(refuse_write);
    run_async(async {
        let store = SqliteStore::open(&folder.join("tambour.db"), false).await.unwrap();
        // The request fails with an error, and the next one is accepted.
        WRITES_TO_REFUSE.store(1, Ordering::SeqCst);
        let new = NewRun { row: row(0), opens_conversation: true, ..NewRun::default() };
        assert!(store.begin(new).await.is_err());
        assert!(store.message("msg_0").await.unwrap().is_none(), "it was not taken");
        let mut lease = begin(&store, &row(0)).await;
        // A run waits, and goes on by itself.
        for (at, refusals, refuses_truncation) in
            [(0, 0, false), (1, 1, false), (2, 1, true), (3, 3, true), (4, 0, false)]
        {
            WRITES_TO_REFUSE.store(refusals, Ordering::SeqCst);
            REFUSES_TRUNCATION.store(refuses_truncation, Ordering::SeqCst);
            let before = REFUSALS.load(Ordering::SeqCst);
            lease.append(batch(at * ENTRIES + 1)).await.into_result().unwrap();
            assert_eq!(REFUSALS.load(Ordering::SeqCst) - before, refusals + u64::from(refuses_truncation));
            assert_eq!(count_entries(&store, "msg_0").await, (at + 1) * ENTRIES, "readers see it once");
        }
        // Aborts as if killed, before the database has it.
        std::process::abort();
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_journal_whose_write_fails_goes_on_without_loss() {
    let folder = Folder::new();
    let mut child = child_command("journal::refused_child", &json!(folder.0));
    let ran = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(!errors.contains("panicked"), "{errors}");
    let store = SqliteStore::open(&folder.0.join("tambour.db"), false).await.unwrap();
    assert_eq!(store.message("msg_0").await.unwrap().unwrap().status, "running");
    assert_eq!(count_entries(&store, "msg_0").await, 5 * ENTRIES);
    store.close().await;
}

/// Tells the sync thread to die at its next sync.
static SYNC_DIES: AtomicBool = AtomicBool::new(false);
static SYNCING: AtomicBool = AtomicBool::new(false);
static DEATH_REPORTED: AtomicBool = AtomicBool::new(false);
/// Set once the sync thread has died.
static SYNC_ENDED: AtomicBool = AtomicBool::new(false);
/// Makes the next record wait for the death of the sync thread.
static HOLDS_WRITES: AtomicBool = AtomicBool::new(false);
static WRITING: AtomicBool = AtomicBool::new(false);
/// Blocks writes to the database until it is set.
static DATABASE_RELEASED: AtomicBool = AtomicBool::new(false);

fn wait_for_flag(flag: &AtomicBool) {
    while !flag.load(Ordering::SeqCst) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn die_in_sync(point: &'static str) {
    match point {
        "sync.before" if SYNC_DIES.load(Ordering::SeqCst) => {
            SYNCING.store(true, Ordering::SeqCst);
            wait_for_flag(&DEATH_REPORTED);
            panic!("the thread dies");
        }
        "sync.over" => SYNC_ENDED.store(true, Ordering::SeqCst),
        "log.before" if HOLDS_WRITES.swap(false, Ordering::SeqCst) => {
            WRITING.store(true, Ordering::SeqCst);
            wait_for_flag(&SYNC_ENDED);
        }
        // Entries of the database are durable, and may be seen.
        "database.before" if SYNC_DIES.load(Ordering::SeqCst) => {
            tokio::task::block_in_place(|| wait_for_flag(&DATABASE_RELEASED))
        }
        _ => {}
    }
}

/// Sets its flag when dropped, so that a failing test does not block a waiting thread.
struct FlagOnDrop(&'static AtomicBool);

impl Drop for FlagOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Not a test: the process whose syncs end.
#[test]
#[ignore = "the test below runs it"]
fn unsynced_child() {
    let folder = child_folder();
    tambour_server::fail::arm(die_in_sync);
    run_async(async {
        let store = SqliteStore::open(&folder.join("tambour.db"), true).await.unwrap();
        let mut append_lease = begin(&store, &row(0)).await;
        let mut end_lease = begin(&store, &row(1)).await;
        let release = FlagOnDrop(&DATABASE_RELEASED);
        SYNC_DIES.store(true, Ordering::SeqCst);
        append_lease.append(batch(1)).await.into_result().unwrap();
        wait_for_flag(&SYNCING);
        // A run that arrives during the sync waits for the next one, which never comes.
        let new = NewRun { row: row(2), opens_conversation: true, ..NewRun::default() };
        let Ok(BeginOutcome::Started { lease: _beginning, durable }) = store.begin(new).await else {
            panic!("it begins")
        };
        // A run that found the thread alive, and writes after its death.
        HOLDS_WRITES.store(true, Ordering::SeqCst);
        let finish_task = tokio::spawn(async move {
            let mut last = Batch::new(end_lease.next_number());
            last.push_event("completed", |out| out.extend_from_slice(b"{}"));
            let end = RunEnd { last, status: "completed".to_owned(), outcome: MessageOutcome::default() };
            end_lease.finish(end).await
        });
        wait_for_flag(&WRITING);
        DEATH_REPORTED.store(true, Ordering::SeqCst);
        let follower = tokio::spawn(store.follow("msg_0", 0, 1 << 20).collect::<Vec<_>>());
        assert_eq!(with_timeout(append_lease.wait_settled()).await, WriteOutcome::Unknown);
        assert_eq!(with_timeout(durable).await, WriteOutcome::Unknown, "a run that begins is told");
        assert_eq!(
            with_timeout(finish_task).await.unwrap(),
            WriteOutcome::Unknown,
            "a run that ends is told"
        );
        with_timeout(store.wait_dead()).await;
        let next = append_lease.next_number();
        assert_eq!(append_lease.append(batch(next)).await, WriteOutcome::Down);
        assert_eq!(append_lease.next_number(), next, "what is not on the log has no number");
        assert!(
            store.begin(NewRun { row: row(3), opens_conversation: true, ..NewRun::default() }).await.is_err()
        );
        assert!(store.check_ready().await.is_err());
        drop(append_lease);
        let followed_entries = with_timeout(follower).await.unwrap();
        let entries = followed_entries.iter().flatten().flat_map(Batch::entries).count();
        assert_eq!(entries, 0, "nobody sees what is not durable");
        assert!(store.read("msg_0", 0, 1 << 20).await.is_ok_and(|(batches, _)| batches.is_empty()));
        drop(release);
    });
}

/// Makes the database's writer wait at its next commit, and die when told to.
static WRITER_HELD: AtomicBool = AtomicBool::new(false);
static WRITER_DIES: AtomicBool = AtomicBool::new(false);

fn die_in_commit(point: &'static str) {
    if point == "database.before" && WRITER_HELD.load(Ordering::SeqCst) {
        tokio::task::block_in_place(|| wait_for_flag(&WRITER_DIES));
        panic!("the writer dies");
    }
}

/// Not a test: the process whose writer dies while a run waits for it.
#[test]
#[ignore = "the test below runs it"]
fn unwritten_child() {
    let folder = child_folder();
    tambour_server::fail::arm(die_in_commit);
    run_async(async {
        let store = SqliteStore::open(&folder.join("tambour.db"), false).await.unwrap();
        let mut lease = begin(&store, &row(0)).await;
        let dies = FlagOnDrop(&WRITER_DIES);
        WRITER_HELD.store(true, Ordering::SeqCst);
        let next = loop {
            let next = lease.next_number();
            assert!(next < 100 * ENTRIES, "a run waits for the database");
            match lease.append(batch(next)) {
                PendingAppend::Done(written) => written.into_result().unwrap(),
                PendingAppend::Waiting(append) => {
                    WRITER_DIES.store(true, Ordering::SeqCst);
                    assert_eq!(with_timeout(append).await, WriteOutcome::Unknown);
                    break next;
                }
            }
        };
        assert_eq!(lease.next_number(), next, "nobody knows whether it is on the log");
        with_timeout(store.wait_dead()).await;
        assert_eq!(lease.append(batch(next)).await, WriteOutcome::Down);
        assert_eq!(lease.next_number(), next);
        drop(dies);
    });
}

#[test]
fn what_may_not_be_on_the_log_has_no_number() {
    let folder = Folder::new();
    run_passing_child("journal::unwritten_child", &json!(folder.0));
}

#[test]
fn nobody_waits_for_a_disk_that_is_synced_no_more() {
    let folder = Folder::new();
    run_passing_child("journal::unsynced_child", &json!(folder.0));
}
