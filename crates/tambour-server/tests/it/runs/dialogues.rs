//! Dialogues, their turns and inputs: the part of the suite of runs that every back end passes.

use super::*;

pub(super) const DIALOGUE: &str = "dlg";

async fn dialogue(store: &dyn Runs) {
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
    let row = MessageRow { conversation_id: DIALOGUE.to_owned(), kind: RunKind::Turn, ..row(id) };
    NewRun { row, ..NewRun::default() }
}

fn once(turn: &str) -> InputClaim {
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
        records: vec![CallRecord::Over(format!("over {state}"))],
        once: Some((once(turn), state.to_owned())),
    };
    let outcome = MessageOutcome {
        summary: "{}".to_owned(),
        progress: Some(Box::new(progress)),
        ..MessageOutcome::default()
    };
    RunEnd { last, status: "completed".to_owned(), outcome }
}

/// State of the dialogue, and the stored response to its input.
async fn standing(store: &dyn Runs) -> (String, Option<String>) {
    let row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    let kept = store.input_response("owner", "word", "2025-12-31T00:00:00.000Z").await.unwrap();
    (row.state, kept.map(|kept| kept.body))
}

/// Stores the record of a call that begins.
async fn asked(store: &dyn Runs) {
    let row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    store.step_dialogue(&row, &[CallRecord::New("running".to_owned())]).await.unwrap();
}

/// Records of calls of the dialogue.
async fn records(store: &dyn Runs) -> Vec<String> {
    store.rounds(DIALOGUE, 0, 10).await.unwrap().into_iter().map(|(_, record)| record).collect()
}

pub(super) async fn a_turn_and_what_it_makes_of_its_dialogue_are_one_step<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    dialogue(&*store).await;
    let mut lease = begin(&*store, new_turn("turn_1")).await;
    assert_eq!(lease.append(batch(1)).await, WriteOutcome::Stored);
    assert_eq!(lease.wait_settled().await, WriteOutcome::Stored);
    // A dialogue is not in a conversation.
    assert!(store.conversation(DIALOGUE).await.unwrap().is_none());
    let refused = store.acquire(NewRun {
        row: MessageRow { kind: RunKind::Message, ..new_turn("msg").row },
        ..NewRun::default()
    });
    assert_eq!(name(&refused.await.unwrap()), "no conversation");
    let other = store.acquire(NewRun {
        row: MessageRow { owner: "other".to_owned(), ..new_turn("turn").row },
        ..NewRun::default()
    });
    assert_eq!(name(&other.await.unwrap()), "no conversation");
    // A crash before the end leaves the dialogue unchanged.
    let backend = backend.crash().await;
    drop((lease, store));
    let store = backend.store();
    let left = store.list_abandoned().await.unwrap();
    assert_eq!(
        left.iter().map(|row| (row.id.as_str(), row.kind)).collect::<Vec<_>>(),
        [("turn_1", RunKind::Turn)]
    );
    assert_eq!(standing(&*store).await, ("0".to_owned(), None));
    let mut lease = store.claim("turn_1").await.unwrap().unwrap();
    let end = RunEnd { status: "failed".to_owned(), ..end_of_turn(lease.next_number(), "turn_1", "1") };
    let end = RunEnd { outcome: MessageOutcome { progress: None, ..end.outcome }, ..end };
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert_eq!(standing(&*store).await, ("0".to_owned(), None));
    // Readers of the end find the new state and the record of the call, with or without a crash right after it.
    let mut lease = begin(&*store, new_turn("turn_2")).await;
    asked(&*store).await;
    let end = end_of_turn(lease.next_number(), "turn_2", "2");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert_eq!(standing(&*store).await, ("2".to_owned(), Some("2".to_owned())));
    assert_eq!(records(&*store).await, ["over 2"]);
    let mut lease = begin(&*store, new_turn("turn_3")).await;
    asked(&*store).await;
    let end = end_of_turn(lease.next_number(), "turn_3", "3");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    let backend = backend.crash().await;
    drop((lease, store));
    let store = backend.store();
    assert_eq!(standing(&*store).await, ("3".to_owned(), Some("3".to_owned())));
    assert_eq!(records(&*store).await, ["over 2", "over 3"]);
    let kept = store.input_response("owner", "word", "2025-12-31T00:00:00.000Z").await.unwrap().unwrap();
    assert_eq!((kept.turn.as_deref(), kept.status), (Some("turn_3"), 200));
    assert!(store.list_abandoned().await.unwrap().is_empty());
    // A turn has the age of its dialogue.
    let retention = Retention { before: Some("2027-01-01T00:00:00.000Z"), bytes: Some(0) };
    assert!(store.expired_messages(retention).await.unwrap().is_empty());
}

pub(super) async fn a_deleted_dialogue_takes_its_turns_along<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    dialogue(&*store).await;
    let mut ended = begin(&*store, new_turn("turn_1")).await;
    let end = end_of_turn(ended.next_number(), "turn_1", "1");
    assert_eq!(ended.finish(end).await, WriteOutcome::Stored);
    let mut runs = begin(&*store, new_turn("turn_2")).await;
    assert_eq!(runs.append(batch(1)).await, WriteOutcome::Stored);
    store.close_conversation(DIALOGUE);
    assert_eq!(name(&store.acquire(new_turn("turn_3")).await.unwrap()), "no conversation");
    store.delete_dialogue(DIALOGUE).await.unwrap();
    let end = end_of_turn(runs.next_number(), "turn_2", "2");
    assert_eq!(runs.finish(end).await, WriteOutcome::Fenced);
    for turn in ["turn_1", "turn_2", "turn_3"] {
        assert!(store.message(turn).await.unwrap().is_none(), "{turn}");
        assert_eq!(store.read(turn, 0, 1).await.unwrap().1, LogState::Gone, "{turn}");
    }
    assert_eq!(name(&store.acquire(new_turn("turn_4")).await.unwrap()), "no conversation");
    let backend = backend.crash().await;
    let store = backend.store();
    assert!(store.dialogue(DIALOGUE).await.unwrap().is_none());
    assert!(store.message("turn_1").await.unwrap().is_none());
}

pub(super) async fn an_input_that_was_taken_gives_way_to_the_next<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    dialogue(&*store).await;
    let since = "2025-12-31T00:00:00.000Z";
    let input = |word: &str, turn: &str| InputClaim {
        repeat: word.to_owned(),
        request: format!("POST dialogues/{DIALOGUE}/input {word}"),
        ..once(turn)
    };
    let mut row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    row.state = "1".to_owned();
    store.take_input(&row, Some(&input("first", "turn_1")), &[]).await.unwrap();
    let taken = store.input_response("owner", "first", since).await.unwrap().unwrap();
    assert_eq!(taken.status, InputResponse::NO_RESPONSE);
    row.state = "2".to_owned();
    store.take_input(&row, Some(&input("second", "turn_2")), &[]).await.unwrap();
    assert!(store.input_response("owner", "first", since).await.unwrap().is_none());
    // An answered input keeps its response, whichever input comes next.
    let mut lease = begin(&*store, new_turn("turn_2")).await;
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
    let kept = store.input_response("owner", "second", since).await.unwrap().unwrap();
    assert_eq!((kept.status, kept.body.as_str()), (200, "answer"));
    assert_eq!(store.dialogue(DIALOGUE).await.unwrap().unwrap().state, "4");
}

pub(super) async fn a_dialogue_is_closed_only_when_nothing_runs_in_it<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    dialogue(&*store).await;
    let mut lease = begin(&*store, new_turn("turn_1")).await;
    assert!(!store.close_if_idle(DIALOGUE));
    // The dialogue is as open as before.
    let behind = begin(&*store, new_turn("turn_2")).await;
    let end = end_of_turn(lease.next_number(), "turn_1", "1");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert!(!store.close_if_idle(DIALOGUE), "one that waits has begun, too");
    drop(behind);
    assert!(store.close_if_idle(DIALOGUE));
    assert_eq!(name(&store.acquire(new_turn("turn_3")).await.unwrap()), "no conversation");
    store.delete_dialogue(DIALOGUE).await.unwrap();
    assert!(store.dialogue(DIALOGUE).await.unwrap().is_none());
}

pub(super) async fn runs_of_a_key_that_is_removed_end_and_are_written_no_more<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    conversation(&*store).await;
    dialogue(&*store).await;
    let key = |id: &str| KeyRow {
        id: id.to_owned(),
        owner: "owner".to_owned(),
        name: id.to_owned(),
        hash: id.as_bytes().to_vec(),
        admin: false,
        created: "2026-01-01T00:00:00.000Z".to_owned(),
        limits: None,
    };
    for id in ["removed", "other"] {
        store.insert_key(&key(id)).await.unwrap();
    }
    let mut message = begin(&*store, new("msg")).await;
    let mut turn = begin(&*store, new_turn("turn_1")).await;
    for lease in [&mut message, &mut turn] {
        lease.append(batch(1)).await.into_result().unwrap();
    }
    // A message of the other key of the same owner waits for its turn.
    let mut other = begin(&*store, new("other")).await;
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
    within(other.wait_turn()).await;
    assert_eq!(other.finish(self::end(1, 1, 0)).await, WriteOutcome::Stored);
    ended_with_its_key(&*store).await;
    drop((message, turn, other, store));
    let backend = backend.crash().await;
    let store = backend.store();
    ended_with_its_key(&*store).await;
    assert!(store.list_abandoned().await.unwrap().is_empty());
    // The other key continues the dialogue.
    let mut lease = begin(&*store, new_turn("turn_2")).await;
    let end = end_of_turn(lease.next_number(), "turn_2", "1");
    assert_eq!(lease.finish(end).await, WriteOutcome::Stored);
    assert_eq!(standing(&*store).await.0, "1");
}

/// Checks the runs of a key that was removed.
async fn ended_with_its_key(store: &dyn Runs) {
    let keys = store.keys().await.unwrap();
    assert_eq!(keys.iter().map(|key| key.id.as_str()).collect::<Vec<_>>(), ["other"]);
    for id in ["msg", "turn_1"] {
        assert_eq!(read(store, id).await, (ENTRIES + 1, LogState::Ended), "{id}");
        assert_eq!(followed(store, id, 0).await, (1..=ENTRIES + 1).collect::<Vec<_>>(), "{id}");
        assert_eq!(store.message(id).await.unwrap().unwrap().status, "failed", "{id}");
        assert!(store.claim(id).await.unwrap().is_none(), "{id}");
    }
    assert_eq!(store.message("other").await.unwrap().unwrap().status, "completed");
    assert_eq!(standing(store).await, ("0".to_owned(), None));
}

pub(super) async fn a_fork_has_what_stands_before_its_turn<B: Backend>() {
    let backend = B::open().await;
    let store = backend.store();
    dialogue(&*store).await;
    let record = |turn: u32, word: &str| json!({ "turn": format!("turn_{turn}"), "word": word }).to_string();
    let row = store.dialogue(DIALOGUE).await.unwrap().unwrap();
    for turn in 1..=3 {
        let call = |word| CallRecord::New(record(turn, word));
        let records = [CallRecord::Turn(record(turn, "input")), call("first"), call("second")];
        store.step_dialogue(&row, &records).await.unwrap();
    }
    let numbers: Vec<i64> =
        store.dialogue_turns(DIALOGUE, 0, 10).await.unwrap().into_iter().map(|(number, _)| number).collect();
    let fork = DialogueRow { id: "fork".to_owned(), state: "before".to_owned(), ..row.clone() };
    store.fork_dialogue(&fork, DIALOGUE, numbers[2]).await.unwrap();
    // The fork continues on its own.
    store.step_dialogue(&fork, &[CallRecord::New(record(4, "own"))]).await.unwrap();
    drop(store);
    let backend = backend.crash().await;
    let store = backend.store();
    let texts = |rows: Vec<(i64, String)>| rows.into_iter().map(|(_, record)| record).collect::<Vec<_>>();
    let turns = texts(store.dialogue_turns("fork", 0, 10).await.unwrap());
    assert_eq!(turns, [record(1, "input"), record(2, "input")]);
    let calls = texts(store.rounds("fork", 0, 10).await.unwrap());
    let shared = [(1, "first"), (1, "second"), (2, "first"), (2, "second"), (4, "own")];
    assert_eq!(calls, shared.map(|(turn, word)| record(turn, word)));
    assert_eq!(store.dialogue("fork").await.unwrap().unwrap().state, "before");
    // The old branch stays.
    assert_eq!(store.dialogue_turns(DIALOGUE, 0, 10).await.unwrap().len(), 3);
    assert_eq!(store.rounds(DIALOGUE, 0, 10).await.unwrap().len(), 6);
}
