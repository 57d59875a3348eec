//! Runs and their logs as the interface promises them: one suite for every back end, and for a slow disk.

mod dialogues;
mod figures;
mod memory;
#[cfg(unix)]
mod postgres;
mod sqlite;
mod steps;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use tambour::state::{AttachedState, Operation};
use tambour_server::store::{
    Admin, Batch, BeginOutcome, ConversationRow, Conversations, Deletion, DialogueProgress, DialogueRow,
    Dialogues, InputClaim, InputResponse, InputResponses, KeyRow, Lease, Log, LogState, MessageOutcome,
    MessageRow, Messages, NewRun, RecordChange, ReplyFigures, RequestClaim, RequestKey, Responses, Retention,
    RunEnd, RunKind, StoredResponse, StoredUpdate, UsageRow, WriteOutcome,
};

use crate::child_process::{run_async, run_passing_child};
use crate::server::with_timeout;
use dialogues::{
    a_deleted_dialogue_takes_its_turns_along, a_dialogue_is_closed_only_when_nothing_runs_in_it,
    a_fork_has_what_stands_before_its_turn, a_turn_and_what_it_makes_of_its_dialogue_are_one_step,
    an_input_that_was_taken_gives_way_to_the_next, runs_of_a_key_that_is_removed_end_and_are_written_no_more,
};
use figures::figures_are_added_up_and_come_with_the_end;

/// Interfaces that the suite needs of a store.
trait SuiteStore:
    Log + Messages + Conversations + Responses + Deletion + Dialogues + InputResponses + Admin + ReplyFigures
{
}

impl<T> SuiteStore for T where
    T: Log
        + Messages
        + Conversations
        + Responses
        + Deletion
        + Dialogues
        + InputResponses
        + Admin
        + ReplyFigures
{
}

/// A store under test.
#[async_trait]
trait Backend: Sized + Send + Sync + 'static {
    /// Opens an empty store.
    async fn open() -> Self;

    fn store(&self) -> Arc<dyn SuiteStore>;

    /// Dies as if killed, and restarts with the durable data.
    async fn crash(self) -> Self;

    /// The state of a conversation.
    async fn state(&self, conversation: &str) -> Value;

    /// Number of counted requests.
    async fn requests(&self) -> i64;
}

/// Names a back end's tests.
macro_rules! suite {
    ($($name:ident)*) => {
        mod in_memory {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name::<super::memory::MemoryStore>().await;
                }
            )*
        }

        mod on_sqlite {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name::<super::sqlite::SqliteBackend>().await;
                }
            )*
        }

        #[cfg(unix)]
        mod on_postgres {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name::<super::postgres::PostgresBackend>().await;
                }
            )*
        }

        /// Runs all of them on a disk with slow syncs, in a process of its own.
        async fn all_on_a_slow_disk() {
            $(
                eprintln!("{}", stringify!($name));
                $name::<sqlite::SlowBackend>().await;
            )*
        }
    };
}

suite! {
    followers_see_all_of_it_once_and_in_order
    a_log_that_stops_lets_its_followers_go
    who_was_fenced_writes_nothing
    the_end_comes_with_what_came_of_it
    a_crash_at_every_step_loses_and_repeats_nothing
    a_word_begins_one_message_whoever_goes_away
    a_request_is_carried_out_once
    what_is_deleted_does_not_come_back
    a_deleted_message_is_written_no_more
    a_message_made_anew_takes_the_place_of_the_old_one
    turns_come_in_the_order_of_numbers
    a_turn_and_what_it_makes_of_its_dialogue_are_one_step
    a_deleted_dialogue_takes_its_turns_along
    an_input_that_was_taken_gives_way_to_the_next
    a_dialogue_is_closed_only_when_nothing_runs_in_it
    runs_of_a_key_that_is_removed_end_and_are_written_no_more
    a_fork_has_what_stands_before_its_turn
    figures_are_added_up_and_come_with_the_end
    a_conversation_is_there_from_its_first_message_on
}

/// Not a test: the process with the slow disk.
#[test]
#[ignore = "the test below runs it"]
fn child() {
    sqlite::slow_syncs_down();
    run_async(async {
        sqlite::names_are_on_the_disk().await;
        all_on_a_slow_disk().await;
    });
}

#[test]
fn the_same_holds_on_a_slow_disk() {
    run_passing_child("runs::child", &Value::Null);
}

const CONVERSATION: &str = "conv";

fn message_row(id: &str) -> MessageRow {
    MessageRow {
        id: id.to_owned(),
        conversation_id: CONVERSATION.to_owned(),
        owner: "owner".to_owned(),
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        status: "running".to_owned(),
        request: "{}".to_owned(),
        ..MessageRow::default()
    }
}

fn new_run(id: &str) -> NewRun {
    NewRun { row: message_row(id), ..NewRun::default() }
}

async fn insert_conversation(store: &dyn SuiteStore) {
    let row = ConversationRow {
        id: CONVERSATION.to_owned(),
        owner: "owner".to_owned(),
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        ..ConversationRow::default()
    };
    store.insert_conversation(&row).await.unwrap();
}

async fn begin_run(store: &dyn SuiteStore, new: NewRun) -> Box<dyn Lease> {
    let id = new.row.id.clone();
    match store.begin(new).await.unwrap() {
        BeginOutcome::Started { lease, durable } => {
            assert_eq!(durable.await, WriteOutcome::Stored);
            lease
        }
        refusal => panic!("{id} begins: {}", outcome_name(&refusal)),
    }
}

fn outcome_name(outcome: &BeginOutcome) -> &'static str {
    match outcome {
        BeginOutcome::Started { .. } => "begun",
        BeginOutcome::Repeated(_) => "repeated",
        BeginOutcome::InProgress => "under way",
        BeginOutcome::Busy => "busy",
        BeginOutcome::NoConversation => "no conversation",
        BeginOutcome::NoMessage => "no message",
        BeginOutcome::StateGone => "state gone",
    }
}

/// Entries of one batch.
const ENTRIES: u64 = 10;

/// A batch from entry `first` on.
fn batch(first: u64) -> Batch {
    let mut batch = Batch::new(first);
    (first..first + ENTRIES)
        .for_each(|number| batch.push_raw(number, &format!("entry {number} {:>500}", "")));
    batch
}

/// The end of a run that sets `a` in the state from `before` to the number of the update.
fn run_end(first: u64, position: i64, before: i64) -> RunEnd {
    let mut last = Batch::new(first);
    last.push_event("completed", |out| out.extend_from_slice(b"{}"));
    let mut state = json!({});
    if before > 0 {
        state["a"] = before.into();
    }
    let operations = vec![Operation::from_value(&json!(["SET", "a", position]))];
    let mut attached_state = AttachedState { state, ..AttachedState::default() };
    let applied_block = attached_state.apply("", operations, false);
    let usage = UsageRow {
        day: "2026-01-01".to_owned(),
        key: "key".to_owned(),
        name: String::new(),
        owner: "owner".to_owned(),
        requests: 1,
        input_tokens: 0,
        output_tokens: 0,
    };
    let outcome = MessageOutcome {
        summary: "{}".to_owned(),
        updates: vec![StoredUpdate { position, applied: json!(applied_block).to_string() }],
        usage: Some(usage),
        ..MessageOutcome::default()
    };
    RunEnd { last, status: "completed".to_owned(), outcome }
}

/// Reads a whole log entry by entry: its last number and state.
async fn read_log(store: &dyn SuiteStore, id: &str) -> (u64, LogState) {
    let mut last = 0;
    loop {
        let (batches, state) = store.read(id, last, 16 << 10).await.unwrap();
        if batches.is_empty() {
            return (last, state);
        }
        let after = last;
        for entry in batches.iter().flat_map(Batch::entries).filter(|entry| entry.number > after) {
            assert_eq!(entry.number, last + 1, "{id}: no gaps");
            last = entry.number;
        }
    }
}

/// All numbers that a follower reads after `after`.
async fn followed_numbers(store: &dyn SuiteStore, id: &str, after: u64) -> Vec<u64> {
    let batches: Vec<_> = store.follow(id, after, 4 << 10).collect().await;
    let entries = batches.iter().flat_map(|batch| batch.as_ref().unwrap().entries());
    entries.map(|entry| entry.number).filter(|number| *number > after).collect()
}

async fn followers_see_all_of_it_once_and_in_order<B: Backend>() {
    const BATCHES: u64 = 60;
    let backend = B::open().await;
    let store = &*backend.store();
    insert_conversation(store).await;
    let mut lease = begin_run(store, new_run("msg")).await;
    let last_number = BATCHES * ENTRIES + 1;
    let writer = async {
        for at in 0..BATCHES {
            lease.append(batch(at * ENTRIES + 1)).await.into_result().unwrap();
            // Lets followers run in between.
            tokio::task::yield_now().await;
        }
        assert_eq!(lease.finish(run_end(last_number, 1, 0)).await, WriteOutcome::Stored);
    };
    // A follower that starts when memory may have dropped the entries it needs.
    let late_numbers = async {
        while store.read("msg", last_number - 2, 1).await.unwrap().0.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        followed_numbers(store, "msg", 3).await
    };
    let followers = async {
        tokio::join!(
            writer,
            followed_numbers(store, "msg", 0),
            followed_numbers(store, "msg", last_number / 2),
            late_numbers
        )
    };
    let ((), first, middle, late_numbers) = with_timeout(followers).await;
    assert_eq!(first, (1..=last_number).collect::<Vec<_>>());
    assert_eq!(middle, (last_number / 2 + 1..=last_number).collect::<Vec<_>>());
    assert_eq!(late_numbers, (4..=last_number).collect::<Vec<_>>());
    assert_eq!(read_log(store, "msg").await, (last_number, LogState::Ended));
    // After the crash only the stored log is left.
    let backend = backend.crash().await;
    let store = &*backend.store();
    assert_eq!(followed_numbers(store, "msg", 5).await, (6..=last_number).collect::<Vec<_>>());
    assert!(followed_numbers(store, "msg", last_number).await.is_empty());
}

async fn a_log_that_stops_lets_its_followers_go<B: Backend>() {
    let backend = B::open().await;
    let store = &*backend.store();
    insert_conversation(store).await;
    let mut lease = begin_run(store, new_run("msg")).await;
    lease.append(batch(1)).await.into_result().unwrap();
    let mut follower = store.follow("msg", 0, 1 << 20);
    assert_eq!(with_timeout(follower.next()).await.unwrap().unwrap().last(), ENTRIES);
    // The follower waits for more, until the log is over.
    assert!(tokio::time::timeout(Duration::from_millis(20), follower.next()).await.is_err());
    drop(lease);
    assert!(with_timeout(follower.next()).await.is_none());
    assert_eq!(read_log(store, "msg").await, (ENTRIES, LogState::Open));
    // A new holder of the lease continues, and followers come again.
    let mut lease = store.claim("msg").await.unwrap().unwrap();
    let mut follower = store.follow("msg", ENTRIES, 1 << 20);
    assert_eq!(lease.finish(run_end(ENTRIES + 1, 1, 0)).await, WriteOutcome::Stored);
    assert_eq!(with_timeout(follower.next()).await.unwrap().unwrap().last(), ENTRIES + 1);
    assert!(with_timeout(follower.next()).await.is_none());
}

async fn who_was_fenced_writes_nothing<B: Backend>() {
    let backend = B::open().await;
    let store = &*backend.store();
    insert_conversation(store).await;
    let mut old_lease = begin_run(store, new_run("msg")).await;
    old_lease.append(batch(1)).await.into_result().unwrap();
    let mut lease = store.claim("msg").await.unwrap().unwrap();
    assert!(lease.epoch() > old_lease.epoch());
    assert_eq!(lease.next_number(), ENTRIES + 1);
    assert_eq!(old_lease.append(batch(ENTRIES + 1)).await, WriteOutcome::Fenced);
    assert_eq!(old_lease.next_number(), ENTRIES + 1, "what was not stored has no number");
    assert_eq!(old_lease.finish(run_end(ENTRIES + 1, 1, 0)).await, WriteOutcome::Fenced);
    drop(old_lease);
    // Entries of the previous holder may still be on their way to the disk.
    assert_eq!(lease.wait_settled().await, WriteOutcome::Stored);
    assert_eq!(read_log(store, "msg").await, (ENTRIES, LogState::Open));
    lease.append(batch(ENTRIES + 1)).await.into_result().unwrap();
    assert_eq!(lease.finish(run_end(2 * ENTRIES + 1, 1, 0)).await, WriteOutcome::Stored);
    assert!(store.claim("msg").await.unwrap().is_none(), "it has ended");
    assert!(store.claim("nothing").await.unwrap().is_none());
    assert_eq!(read_log(store, "msg").await, (2 * ENTRIES + 1, LogState::Ended));
    assert_eq!((backend.state(CONVERSATION).await, backend.requests().await), (json!({"a": 1}), 1));
}

async fn the_end_comes_with_what_came_of_it<B: Backend>() {
    let backend = B::open().await;
    let store = &*backend.store();
    insert_conversation(store).await;
    for at in 1..=20 {
        let id = format!("msg_{at}");
        let mut lease = begin_run(store, new_run(&id)).await;
        lease.append(batch(1)).await.into_result().unwrap();
        let own_last: u64 = lease.read(0, 1 << 20).await.unwrap().last().unwrap().last();
        assert_eq!(own_last, ENTRIES, "a lease reads what it wrote, whoever else may");
        let follower = async {
            let numbers = followed_numbers(store, &id, 0).await;
            // Correct as soon as the end is visible.
            (numbers, store.message(&id).await.unwrap().unwrap(), backend.state(CONVERSATION).await)
        };
        let (written, (numbers, row, state)) =
            tokio::join!(lease.finish(run_end(ENTRIES + 1, at, at - 1)), follower);
        assert_eq!(written, WriteOutcome::Stored);
        assert_eq!(numbers.last(), Some(&(ENTRIES + 1)));
        assert_eq!((row.status.as_str(), row.outcome.is_some()), ("completed", true), "{id}");
        assert_eq!(state, json!({"a": at}), "{id}");
    }
    assert_eq!(backend.requests().await, 20);
}

/// Finds a conversation opened by a message while it moves from the journal to the database.
async fn a_conversation_is_there_from_its_first_message_on<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    let mut lookups = Vec::new();
    for at in 0..200 {
        let id = format!("conv_{at}");
        let row = MessageRow { conversation_id: id.clone(), ..message_row(&format!("msg_{at}")) };
        let mut lease =
            begin_run(&*store, NewRun { row, opens_conversation: true, ..NewRun::default() }).await;
        let store = store.clone();
        lookups.push(tokio::spawn(async move {
            for attempt in 0..100 {
                assert!(store.conversation(&id).await.unwrap().is_some(), "{id}, look {attempt}");
            }
        }));
        assert_eq!(lease.finish(run_end(1, 1, 0)).await, WriteOutcome::Stored);
    }
    for lookup in lookups {
        lookup.await.unwrap();
    }
}

async fn a_crash_at_every_step_loses_and_repeats_nothing<B: Backend>() {
    steps::crash_after_every_step::<B>().await;
}

async fn a_word_begins_one_message_whoever_goes_away<B: Backend>() {
    let backend = Arc::new(B::open().await);
    insert_conversation(&*backend.store()).await;
    let started = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for client in 0..8_u64 {
        let (backend, started) = (backend.clone(), started.clone());
        clients.push(tokio::spawn(async move {
            let store = backend.store();
            for key in 0..60_u64 {
                // Each client disconnects at another moment, and retries until it has an answer.
                for attempt in 0.. {
                    let row = MessageRow {
                        repeat: Some(format!("word {key}")),
                        ..message_row(&format!("msg_{client}_{key}_{attempt}"))
                    };
                    let beginning = store.begin(NewRun { row, ..NewRun::default() });
                    let patience = Duration::from_micros((client * 37 + key * 11) % 400 * (attempt + 1));
                    match tokio::time::timeout(patience, beginning).await {
                        Ok(Ok(BeginOutcome::Started { mut lease, .. })) => {
                            started.fetch_add(1, Ordering::SeqCst);
                            assert_eq!(lease.finish(run_end(1, 1, 0)).await, WriteOutcome::Stored);
                        }
                        Ok(Ok(BeginOutcome::Repeated(_))) => break,
                        Ok(Ok(BeginOutcome::InProgress)) | Err(_) => tokio::task::yield_now().await,
                        Ok(Ok(refusal)) => panic!("{}", outcome_name(&refusal)),
                        Ok(Err(error)) => panic!("{error}"),
                    }
                }
            }
        }));
    }
    for client in clients {
        with_timeout(client).await.unwrap();
    }
    assert_eq!(started.load(Ordering::SeqCst), 60);
    let store = backend.store();
    let page = store.conversation_messages(CONVERSATION, 0, 1000, usize::MAX).await.unwrap();
    let keys: BTreeSet<_> = page.rows.iter().map(|row| row.repeat.clone()).collect();
    assert_eq!((page.rows.len(), keys.len()), (60, 60), "each word has one message");
    // The same after a crash.
    let backend = Arc::into_inner(backend).expect("the clients are gone");
    let backend = backend.crash().await;
    for key in 0..60 {
        let row = MessageRow { repeat: Some(format!("word {key}")), ..message_row("again") };
        let attempt = backend.store().begin(NewRun { row, ..NewRun::default() }).await.unwrap();
        assert_eq!(outcome_name(&attempt), "repeated");
    }
    // Too long ago to be the same request.
    let row = MessageRow { repeat: Some("word 1".to_owned()), ..message_row("later") };
    let later_run = NewRun { row, repeat_since: "2026-01-02T00:00:00.000Z".to_owned(), ..NewRun::default() };
    assert_eq!(outcome_name(&backend.store().begin(later_run).await.unwrap()), "begun");
}

async fn a_request_is_carried_out_once<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    let request =
        |key: &str| RequestKey { owner: "o".into(), route: "POST /x".into(), idempotency_key: key.into() };
    let answer = |body: &str| StoredResponse {
        digest: vec![1],
        status: 201,
        body: body.into(),
        ..StoredResponse::default()
    };
    // One of the concurrent callers executes the request; when that fails, one of the others does.
    for (round, fails) in [("a", false), ("b", true)] {
        let executions = Arc::new(AtomicUsize::new(0));
        let fails_once = Arc::new(AtomicBool::new(fails));
        let mut clients = Vec::new();
        for client in 0..12 {
            let (store, executions, fails_once, request) =
                (store.clone(), executions.clone(), fails_once.clone(), request(round));
            clients.push(tokio::spawn(async move {
                loop {
                    match store.claim_request(&request, "").await.unwrap() {
                        RequestClaim::Responded(response) => return response.body,
                        RequestClaim::InProgress => tokio::task::yield_now().await,
                        RequestClaim::Claimed => {
                            tokio::task::yield_now().await;
                            if !fails_once.swap(false, Ordering::SeqCst) {
                                executions.fetch_add(1, Ordering::SeqCst);
                                let body = format!("by {client}");
                                let response = StoredResponse {
                                    digest: vec![1],
                                    status: 201,
                                    body: body.into(),
                                    ..StoredResponse::default()
                                };
                                store
                                    .store_response(&request, &response, "2026-01-01T00:00:00.000Z")
                                    .await
                                    .unwrap();
                            }
                            store.release_request(&request);
                        }
                    }
                }
            }));
        }
        let mut answers = BTreeSet::new();
        for client in clients {
            answers.insert(with_timeout(client).await.unwrap());
        }
        assert_eq!((executions.load(Ordering::SeqCst), answers.len()), (1, 1), "{round}");
    }
    // The same after a crash; an unanswered request may be executed then.
    assert_eq!(store.claim_request(&request("c"), "").await.unwrap(), RequestClaim::Claimed);
    drop(store);
    let backend = backend.crash().await;
    let store = backend.store();
    assert!(matches!(store.claim_request(&request("a"), "").await.unwrap(), RequestClaim::Responded(_)));
    assert_eq!(store.claim_request(&request("c"), "").await.unwrap(), RequestClaim::Claimed);
    assert_eq!(store.claim_request(&request("c"), "").await.unwrap(), RequestClaim::InProgress);
    store.store_response(&request("c"), &answer("c"), "2026-01-01T00:00:00.000Z").await.unwrap();
    store.release_request(&request("c"));
    assert_eq!(store.claim_request(&request("c"), "").await.unwrap(), RequestClaim::Responded(answer("c")));
    // An old answer is not repeated.
    assert_eq!(
        store.claim_request(&request("c"), "2026-01-01T00:00:00.000Z").await.unwrap(),
        RequestClaim::Claimed
    );
}

async fn what_is_deleted_does_not_come_back<B: Backend>() {
    let mut backend = B::open().await;
    for round in 0..6 {
        let store = backend.store();
        insert_conversation(&*store).await;
        let (mut posters, finished) = (Vec::new(), Arc::new(AtomicUsize::new(0)));
        for poster in 0..4 {
            let (store, finished) = (store.clone(), finished.clone());
            posters.push(tokio::spawn(async move {
                for at in 0.. {
                    let id = format!("msg_{round}_{poster}_{at}");
                    tokio::task::yield_now().await;
                    match store.begin(new_run(&id)).await.unwrap() {
                        BeginOutcome::Started { mut lease, .. } => {
                            let _ = lease.append(batch(1)).await;
                            // Deleted meanwhile, the run is fenced.
                            let written = lease.finish(run_end(lease.next_number(), at, 0)).await;
                            assert!(
                                matches!(written, WriteOutcome::Stored | WriteOutcome::Fenced),
                                "{written:?}"
                            );
                            finished.fetch_add(1, Ordering::SeqCst);
                        }
                        BeginOutcome::NoConversation => return at,
                        refusal => panic!("{}", outcome_name(&refusal)),
                    }
                }
                0
            }));
        }
        with_timeout(async {
            while finished.load(Ordering::SeqCst) < 3 * round {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        store.close_conversation(CONVERSATION).await.unwrap();
        with_timeout(store.delete_conversation(CONVERSATION)).await.unwrap();
        assert!(store.conversation(CONVERSATION).await.unwrap().is_none());
        for poster in posters {
            with_timeout(poster).await.unwrap();
        }
        assert!(store.conversation(CONVERSATION).await.unwrap().is_none(), "it is back");
        drop(store);
        backend = backend.crash().await;
        let store = backend.store();
        assert!(store.conversation(CONVERSATION).await.unwrap().is_none(), "it is back behind a crash");
        assert!(store.conversation_messages(CONVERSATION, 0, 10, 1000).await.unwrap().rows.is_empty());
        assert!(store.list_abandoned().await.unwrap().is_empty());
    }
}

async fn a_deleted_message_is_written_no_more<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_conversation(&*store).await;
    let mut lease = begin_run(&*store, new_run("msg")).await;
    lease.append(batch(1)).await.into_result().unwrap();
    let next_lease = begin_run(&*store, new_run("behind")).await;
    let number = lease.row().number.unwrap();
    store.delete_messages(&["msg".to_owned()]).await.unwrap();
    assert_eq!(lease.append(batch(ENTRIES + 1)).await, WriteOutcome::Fenced);
    assert_eq!(lease.finish(run_end(ENTRIES + 1, 1, 0)).await, WriteOutcome::Fenced);
    assert_eq!(read_log(&*store, "msg").await, (0, LogState::Gone));
    assert!(store.claim("msg").await.unwrap().is_none());
    // A listing continues from its cursor.
    let page = store.conversation_messages(CONVERSATION, number, 10, usize::MAX).await.unwrap();
    assert_eq!(page.rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["behind"]);
    with_timeout(next_lease.wait_earlier_runs()).await;
    drop((lease, next_lease, store));
    let backend = backend.crash().await;
    let store = backend.store();
    assert_eq!(read_log(&*store, "msg").await, (0, LogState::Gone));
    assert!(store.message("msg").await.unwrap().is_none());
    assert_eq!((backend.state(CONVERSATION).await, backend.requests().await), (json!({}), 0));
}

async fn a_message_made_anew_takes_the_place_of_the_old_one<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_conversation(&*store).await;
    for (at, id) in [(1, "one"), (2, "two"), (3, "three")] {
        let mut lease = begin_run(&*store, new_run(id)).await;
        assert_eq!(lease.finish(run_end(1, at, at - 1)).await, WriteOutcome::Stored);
    }
    let replacement = |id: &str, old: &str| NewRun { replaces: Some(old.to_owned()), ..new_run(id) };
    let conversation_rows = async |store: &dyn SuiteStore| {
        let rows = store.conversation_messages(CONVERSATION, 0, 10, usize::MAX).await.unwrap().rows;
        rows.into_iter().map(|row| (row.id, row.status)).collect::<Vec<_>>()
    };
    let before = conversation_rows(&*store).await;
    // A refused request has changed nothing.
    let refusal = store.begin(replacement("anew", "nothing")).await.unwrap();
    assert_eq!(outcome_name(&refusal), "no message");
    let running = begin_run(&*store, new_run("running")).await;
    assert_eq!(outcome_name(&store.begin(replacement("anew", "two")).await.unwrap()), "busy");
    store.delete_messages(&["running".to_owned()]).await.unwrap();
    drop(running);
    assert_eq!(
        (conversation_rows(&*store).await, backend.state(CONVERSATION).await),
        (before, json!({"a": 3}))
    );
    let lease = begin_run(&*store, replacement("anew", "two")).await;
    // In one step: a crash right then leaves the new message, and the old one superseded.
    drop((lease, store));
    let backend = backend.crash().await;
    let store = backend.store();
    let owned = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
        rows.iter().map(|(id, status)| ((*id).to_owned(), (*status).to_owned())).collect()
    };
    let rows = [("one", "completed"), ("two", "superseded"), ("three", "superseded"), ("anew", "running")];
    assert_eq!(conversation_rows(&*store).await, owned(&rows));
    assert_eq!(backend.state(CONVERSATION).await, json!({"a": 1}));
    let mut lease = store.claim("anew").await.unwrap().unwrap();
    assert_eq!(lease.finish(run_end(1, 4, 1)).await, WriteOutcome::Stored);
    assert_eq!(backend.state(CONVERSATION).await, json!({"a": 4}));
    // Superseded messages stay so when the journal is replayed.
    drop((lease, store));
    let backend = backend.crash().await;
    let rows = [("one", "completed"), ("two", "superseded"), ("three", "superseded"), ("anew", "completed")];
    assert_eq!(conversation_rows(&*backend.store()).await, owned(&rows));
    assert_eq!((backend.state(CONVERSATION).await, backend.requests().await), (json!({"a": 4}), 4));
}

async fn turns_come_in_the_order_of_numbers<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_conversation(&*store).await;
    let (started, finished) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut runs = Vec::new();
    for at in 0..8 {
        let (store, started, finished) = (store.clone(), started.clone(), finished.clone());
        runs.push(tokio::spawn(async move {
            let mut lease = begin_run(&*store, new_run(&format!("msg_{at}"))).await;
            started.fetch_add(1, Ordering::SeqCst);
            // All have begun before any has ended.
            while started.load(Ordering::SeqCst) < 8 {
                tokio::task::yield_now().await;
            }
            let number = lease.row().number.unwrap();
            lease.wait_earlier_runs().await;
            let before = finished.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(finished.fetch_add(1, Ordering::SeqCst), before, "one at a time");
            assert_eq!(lease.finish(run_end(1, 1, 0)).await, WriteOutcome::Stored);
            (number, before)
        }));
    }
    let mut turns = Vec::new();
    for run in runs {
        turns.push(with_timeout(run).await.unwrap());
    }
    turns.sort_unstable();
    let order: Vec<usize> = turns.iter().map(|(_, turn)| *turn).collect();
    assert_eq!(order, (0..8).collect::<Vec<_>>(), "{turns:?}");
    assert!(turns.is_sorted_by(|a, b| a.0 < b.0), "no number twice: {turns:?}");
    let page = store.conversation_messages(CONVERSATION, 0, 10, usize::MAX).await.unwrap();
    let numbers: Vec<i64> = page.rows.iter().map(|row| row.number.unwrap()).collect();
    assert_eq!(numbers, turns.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    // An exclusive run is refused beside another, and refuses others.
    let first = begin_run(&*store, NewRun { is_exclusive: true, ..new_run("first") }).await;
    let second = NewRun { is_exclusive: true, ..new_run("second") };
    assert_eq!(outcome_name(&store.begin(second).await.unwrap()), "busy");
    assert!(store.wait_idle(CONVERSATION).now_or_never().is_none());
    drop(first);
    with_timeout(store.wait_idle(CONVERSATION)).await;
}
