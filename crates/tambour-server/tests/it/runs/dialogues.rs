//! Dialogues, their turns and inputs: the part of the suite of runs that every back end passes.

use super::*;

pub(super) const DIALOGUE: &str = "dlg";
/// Fork of the dialogue.
pub(super) const FORK: &str = "fork";

pub(super) async fn insert_dialogue(store: &dyn SuiteStore) {
    let row = DialogueRow {
        id: DIALOGUE.to_owned(),
        owner: "owner".to_owned(),
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        changed: "2026-01-01T00:00:00.000Z".to_owned(),
        script_id: "script".to_owned(),
        version: 1,
        session: "s".to_owned(),
        script: String::new(),
        status: "active".to_owned(),
        state: "0".to_owned(),
        origin: "{}".to_owned(),
    };
    store.insert_dialogue(&row).await.unwrap();
}

fn new_turn(id: &str) -> NewRun {
    let row = MessageRow { conversation_id: DIALOGUE.to_owned(), kind: RunKind::Turn, ..message_row(id) };
    NewRun { row, ..NewRun::default() }
}

fn input_claim(turn: &str) -> InputClaim {
    InputClaim {
        owner: "owner".to_owned(),
        repeat: "word".to_owned(),
        request: "input".to_owned(),
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        since: "2025-12-31T00:00:00.000Z".to_owned(),
        turn: turn.to_owned(),
    }
}

/// The end of a turn that leaves its dialogue in a state.
fn end_of_turn(first: u64, turn: &str, state: &str) -> RunEnd {
    let mut last = Batch::new(first);
    last.push_event("completed", |out| out.extend_from_slice(b"{}"));
    let progress = DialogueProgress {
        status: "completed".to_owned(),
        state: state.to_owned(),
        changed: "2026-01-02T00:00:00.000Z".to_owned(),
        records: vec![RecordChange::Over(format!("over {state}"))],
        once: Some((input_claim(turn), state.to_owned())),
    };
    let outcome = MessageOutcome {
        summary: "{}".to_owned(),
        progress: Some(Box::new(progress)),
        ..MessageOutcome::default()
    };
    RunEnd { last, status: "completed".to_owned(), outcome }
}

/// State of the dialogue, and the stored response to its input.
async fn state_and_response(store: &dyn SuiteStore) -> (String, Option<String>) {
    let row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    let response = store.input_response("owner", "word", "2025-12-31T00:00:00.000Z").await.unwrap();
    (row.state, response.map(|response| response.body))
}

/// Stores the record of a call that begins.
async fn store_call_start(store: &dyn SuiteStore) {
    let row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    store.step_dialogue(&row, &[RecordChange::New("running".to_owned())]).await.unwrap();
}

/// Records of calls of the dialogue.
async fn call_records(store: &dyn SuiteStore) -> Vec<String> {
    store.call_records(DIALOGUE, 0, 10).await.unwrap().into_iter().map(|(_, record)| record).collect()
}

pub(super) async fn a_turn_and_what_it_makes_of_its_dialogue_are_one_step<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_dialogue(&*store).await;
    let mut lease = begin_run(&*store, new_turn("turn_1")).await;
    assert_eq!(lease.append(batch(1)).await, WriteOutcome::Stored);
    assert_eq!(lease.wait_settled().await, WriteOutcome::Stored);
    // A dialogue is not in a conversation.
    assert!(store.conversation(DIALOGUE).await.unwrap().is_none());
    let refusal = store.begin(NewRun {
        row: MessageRow { kind: RunKind::Message, ..new_turn("msg").row },
        ..NewRun::default()
    });
    assert_eq!(outcome_name(&refusal.await.unwrap()), "no conversation");
    let other = store.begin(NewRun {
        row: MessageRow { owner: "other".to_owned(), ..new_turn("turn").row },
        ..NewRun::default()
    });
    assert_eq!(outcome_name(&other.await.unwrap()), "no conversation");
    // A crash before the end leaves the dialogue unchanged.
    let backend = backend.crash().await;
    drop((lease, store));
    let store = backend.store();
    let abandoned = store.list_abandoned().await.unwrap();
    assert_eq!(
        abandoned.iter().map(|row| (row.id.as_str(), row.kind)).collect::<Vec<_>>(),
        [("turn_1", RunKind::Turn)]
    );
    assert_eq!(state_and_response(&*store).await, ("0".to_owned(), None));
    let mut lease = store.claim("turn_1").await.unwrap().unwrap();
    let end = RunEnd { status: "failed".to_owned(), ..end_of_turn(lease.next_number(), "turn_1", "1") };
    let end = RunEnd { outcome: MessageOutcome { progress: None, ..end.outcome }, ..end };
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert_eq!(state_and_response(&*store).await, ("0".to_owned(), None));
    // Readers of the end find the new state and the record of the call, with or without a crash right after
    // it.
    let mut lease = begin_run(&*store, new_turn("turn_2")).await;
    store_call_start(&*store).await;
    let end = end_of_turn(lease.next_number(), "turn_2", "2");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert_eq!(state_and_response(&*store).await, ("2".to_owned(), Some("2".to_owned())));
    assert_eq!(call_records(&*store).await, ["over 2"]);
    let mut lease = begin_run(&*store, new_turn("turn_3")).await;
    store_call_start(&*store).await;
    let end = end_of_turn(lease.next_number(), "turn_3", "3");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    let backend = backend.crash().await;
    drop((lease, store));
    let store = backend.store();
    assert_eq!(state_and_response(&*store).await, ("3".to_owned(), Some("3".to_owned())));
    assert_eq!(call_records(&*store).await, ["over 2", "over 3"]);
    let response = store.input_response("owner", "word", "2025-12-31T00:00:00.000Z").await.unwrap().unwrap();
    assert_eq!((response.turn.as_deref(), response.status), (Some("turn_3"), 200));
    assert!(store.list_abandoned().await.unwrap().is_empty());
    // A turn has the age of its dialogue.
    let retention = Retention { before: Some("2027-01-01T00:00:00.000Z"), bytes: Some(0) };
    assert!(store.expired_messages(retention).await.unwrap().is_empty());
}

pub(super) async fn a_deleted_dialogue_takes_its_turns_along<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_dialogue(&*store).await;
    let mut ended_lease = begin_run(&*store, new_turn("turn_1")).await;
    let end = end_of_turn(ended_lease.next_number(), "turn_1", "1");
    assert_eq!(ended_lease.finish(end).await, WriteOutcome::Stored);
    let mut runs = begin_run(&*store, new_turn("turn_2")).await;
    assert_eq!(runs.append(batch(1)).await, WriteOutcome::Stored);
    store.close_conversation(DIALOGUE).await.unwrap();
    assert_eq!(outcome_name(&store.begin(new_turn("turn_3")).await.unwrap()), "no conversation");
    store.delete_dialogue(DIALOGUE).await.unwrap();
    let end = end_of_turn(runs.next_number(), "turn_2", "2");
    assert_eq!(runs.finish(end).await, WriteOutcome::Fenced);
    for turn in ["turn_1", "turn_2", "turn_3"] {
        assert!(store.message(turn).await.unwrap().is_none(), "{turn}");
        assert_eq!(store.read(turn, 0, 1).await.unwrap().1, LogState::Gone, "{turn}");
    }
    assert_eq!(outcome_name(&store.begin(new_turn("turn_4")).await.unwrap()), "no conversation");
    let backend = backend.crash().await;
    let store = backend.store();
    assert!(store.dialogue(DIALOGUE).await.unwrap().is_none());
    assert!(store.message("turn_1").await.unwrap().is_none());
}

pub(super) async fn an_input_that_was_taken_gives_way_to_the_next<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_dialogue(&*store).await;
    let created_after = "2025-12-31T00:00:00.000Z";
    let input = |request_id: &str, turn: &str| InputClaim {
        repeat: request_id.to_owned(),
        request: format!("POST dialogues/{DIALOGUE}/input {request_id}"),
        ..input_claim(turn)
    };
    let mut row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    row.state = "1".to_owned();
    store.take_input(&row, Some(&input("first", "turn_1")), &[]).await.unwrap();
    let first_response = store.input_response("owner", "first", created_after).await.unwrap().unwrap();
    assert_eq!(first_response.status, InputResponse::NO_RESPONSE);
    row.state = "2".to_owned();
    store.take_input(&row, Some(&input("second", "turn_2")), &[]).await.unwrap();
    assert!(store.input_response("owner", "first", created_after).await.unwrap().is_none());
    // An answered input keeps its response, whichever input comes next.
    let mut lease = begin_run(&*store, new_turn("turn_2")).await;
    let mut end = end_of_turn(lease.next_number(), "turn_2", "3");
    if let Some(progress) = &mut end.outcome.progress {
        progress.once = Some((input("second", "turn_2"), "answer".to_owned()));
    }
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    row.state = "4".to_owned();
    store.take_input(&row, None, &[]).await.unwrap();
    let backend = backend.crash().await;
    drop((lease, store));
    let store = backend.store();
    let response = store.input_response("owner", "second", created_after).await.unwrap().unwrap();
    assert_eq!((response.status, response.body.as_str()), (200, "answer"));
    assert_eq!(store.dialogue(DIALOGUE).await.unwrap().unwrap().state, "4");
}

pub(super) async fn a_dialogue_is_closed_only_when_nothing_runs_in_it<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_dialogue(&*store).await;
    let mut lease = begin_run(&*store, new_turn("turn_1")).await;
    assert!(!store.close_if_idle(DIALOGUE).await.unwrap());
    // The dialogue is as open as before.
    let next_turn = begin_run(&*store, new_turn("turn_2")).await;
    let end = end_of_turn(lease.next_number(), "turn_1", "1");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert!(!store.close_if_idle(DIALOGUE).await.unwrap(), "one that waits has begun, too");
    drop(next_turn);
    assert!(store.close_if_idle(DIALOGUE).await.unwrap());
    assert_eq!(outcome_name(&store.begin(new_turn("turn_3")).await.unwrap()), "no conversation");
    store.delete_dialogue(DIALOGUE).await.unwrap();
    assert!(store.dialogue(DIALOGUE).await.unwrap().is_none());
}

pub(super) async fn runs_of_a_key_that_is_removed_end_and_are_written_no_more<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_conversation(&*store).await;
    insert_dialogue(&*store).await;
    let key = |id: &str| KeyRow {
        id: id.to_owned(),
        owner: "owner".to_owned(),
        name: id.to_owned(),
        hash: id.as_bytes().to_vec(),
        is_admin: false,
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        limits: None,
    };
    for id in ["removed", "other"] {
        store.insert_key(&key(id)).await.unwrap();
    }
    let mut message = begin_run(&*store, new_run("msg")).await;
    let mut turn = begin_run(&*store, new_turn("turn_1")).await;
    for lease in [&mut message, &mut turn] {
        lease.append(batch(1)).await.into_result().unwrap();
    }
    // A message of the other key of the same owner waits for its turn.
    let mut other = begin_run(&*store, new_run("other")).await;
    assert!(store.delete_key("removed").await.unwrap());
    assert!(!store.delete_key("removed").await.unwrap());
    // Ends written by the server, without the changes the turn would have made to its dialogue.
    for lease in [&mut message, &mut turn] {
        let mut last = Batch::new(lease.next_number());
        last.push_event("error", |out| out.extend_from_slice(br#"{"code":"unauthorized"}"#));
        let end = |last| RunEnd {
            last,
            status: "failed".to_owned(),
            outcome: MessageOutcome { summary: "{}".to_owned(), ..MessageOutcome::default() },
        };
        assert_eq!(lease.finish(end(last)).await, WriteOutcome::Stored);
        // Later output of the model is refused, and there is no second end.
        assert_eq!(lease.append(batch(lease.next_number())).await, WriteOutcome::Fenced);
        let next = Batch::new(lease.next_number());
        assert_eq!(lease.finish(end(next)).await, WriteOutcome::Fenced);
    }
    with_timeout(other.wait_earlier_runs()).await;
    assert_eq!(other.finish(self::run_end(1, 1, 0)).await, WriteOutcome::Stored);
    check_runs_of_removed_key(&*store).await;
    drop((message, turn, other, store));
    let backend = backend.crash().await;
    let store = backend.store();
    check_runs_of_removed_key(&*store).await;
    assert!(store.list_abandoned().await.unwrap().is_empty());
    // The other key continues the dialogue.
    let mut lease = begin_run(&*store, new_turn("turn_2")).await;
    let end = end_of_turn(lease.next_number(), "turn_2", "1");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert_eq!(state_and_response(&*store).await.0, "1");
}

/// Checks the runs of a key that was removed.
async fn check_runs_of_removed_key(store: &dyn SuiteStore) {
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ["other"]);
    for id in ["msg", "turn_1"] {
        assert_eq!(read_log(store, id).await, (ENTRIES + 1, LogState::Ended), "{id}");
        assert_eq!(followed_numbers(store, id, 0).await, (1..=ENTRIES + 1).collect::<Vec<_>>(), "{id}");
        assert_eq!(store.message(id).await.unwrap().unwrap().status, "failed", "{id}");
        assert!(store.claim(id).await.unwrap().is_none(), "{id}");
    }
    assert_eq!(store.message("other").await.unwrap().unwrap().status, "completed");
    assert_eq!(state_and_response(store).await, ("0".to_owned(), None));
}

pub(super) async fn a_fork_has_what_stands_before_its_turn<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    insert_dialogue(&*store).await;
    let record = |turn: u32, text: &str| json!({ "turn": format!("turn_{turn}"), "word": text }).to_string();
    let row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    for turn in 1..=3 {
        let call = |text| RecordChange::New(record(turn, text));
        let records = [RecordChange::Turn(record(turn, "input")), call("first"), call("second")];
        store.step_dialogue(&row, &records).await.unwrap();
    }
    let numbers: Vec<i64> =
        store.dialogue_turns(DIALOGUE, 0, 10).await.unwrap().into_iter().map(|(number, _)| number).collect();
    let fork = DialogueRow { id: FORK.to_owned(), state: "before".to_owned(), ..row.clone() };
    store.fork_dialogue(&fork, DIALOGUE, numbers[2]).await.unwrap();
    // The fork continues on its own.
    store.step_dialogue(&fork, &[RecordChange::New(record(4, "own"))]).await.unwrap();
    drop(store);
    let backend = backend.crash().await;
    let store = backend.store();
    let texts = |rows: Vec<(i64, String)>| rows.into_iter().map(|(_, record)| record).collect::<Vec<_>>();
    let turns = texts(store.dialogue_turns(FORK, 0, 10).await.unwrap());
    assert_eq!(turns, [record(1, "input"), record(2, "input")]);
    let calls = texts(store.call_records(FORK, 0, 10).await.unwrap());
    let shared = [(1, "first"), (1, "second"), (2, "first"), (2, "second"), (4, "own")];
    assert_eq!(calls, shared.map(|(turn, text)| record(turn, text)));
    assert_eq!(store.dialogue(FORK).await.unwrap().unwrap().state, "before");
    // The old branch stays.
    assert_eq!(store.dialogue_turns(DIALOGUE, 0, 10).await.unwrap().len(), 3);
    assert_eq!(store.call_records(DIALOGUE, 0, 10).await.unwrap().len(), 6);
}
