//! One message after another, and a crash after each step.

use serde_json::json;
use tambour_server::store::{LogState, WriteOutcome};

use super::{
    Backend, CONVERSATION, ENTRIES, batch, begin_run, insert_conversation, new_run, read_log, run_end,
};

/// Number of messages, and steps of each: begin, two appends, end.
const MESSAGES: i64 = 3;
const STEPS: i64 = 4;

/// Dies after every number of steps, and compares the stored data with the steps done.
pub(super) async fn crash_after_every_step<B: Backend>() {
    for steps in 0..=MESSAGES * STEPS {
        let backend = B::open().await;
        let store = backend.store();
        insert_conversation(&*store).await;
        let (mut remaining, mut begun, mut ended) = (steps, 0, 0);
        let mut entries = Vec::new();
        let mut leases = Vec::new();
        for at in 1..=MESSAGES {
            if remaining == 0 {
                break;
            }
            let mut lease = begin_run(&*store, new_run(&format!("msg_{at}"))).await;
            (remaining, begun) = (remaining - 1, at);
            entries.push(0);
            let last = entries.last_mut().unwrap();
            for _ in 0..remaining.min(2) {
                lease.append(batch(*last + 1)).await.into_result().unwrap();
                assert_eq!(lease.wait_settled().await, WriteOutcome::Stored);
                *last += ENTRIES;
                remaining -= 1;
            }
            if remaining > 0 && *last == 2 * ENTRIES {
                assert_eq!(lease.finish(run_end(*last + 1, at, at - 1)).await, WriteOutcome::Stored);
                (*last, remaining, ended) = (*last + 1, remaining - 1, at);
            }
            leases.push(lease);
        }
        drop(store);
        let mut backend = backend.crash().await;
        // Leases of the dead process are worthless.
        drop(leases);
        for attempt in 0..2 {
            let store = backend.store();
            for at in 1..=MESSAGES {
                let id = format!("msg_{at}");
                let index = usize::try_from(at - 1).unwrap();
                let state = match at {
                    at if at <= ended => LogState::Ended,
                    at if at <= begun => LogState::Open,
                    _ => LogState::Gone,
                };
                assert_eq!(
                    read_log(&*store, &id).await,
                    (entries.get(index).copied().unwrap_or(0), state),
                    "{steps}, {id}"
                );
            }
            let state = if ended == 0 { json!({}) } else { json!({"a": ended}) };
            assert_eq!(
                (backend.state(CONVERSATION).await, backend.requests().await),
                (state, ended),
                "{steps}"
            );
            let abandoned: Vec<String> =
                store.list_abandoned().await.unwrap().into_iter().map(|row| row.id).collect();
            let open: Vec<String> = (ended + 1..=begun).map(|at| format!("msg_{at}")).collect();
            assert_eq!(abandoned, open, "{steps}");
            if attempt == 1 {
                // Recovery as done by a start.
                for at in ended + 1..=begun {
                    let mut lease = store.claim(&format!("msg_{at}")).await.unwrap().unwrap();
                    let last = entries[usize::try_from(at - 1).unwrap()];
                    assert_eq!(lease.next_number(), last + 1);
                    assert_eq!(lease.finish(run_end(last + 1, at, at - 1)).await, WriteOutcome::Stored);
                    assert_eq!(read_log(&*store, &format!("msg_{at}")).await, (last + 1, LogState::Ended));
                }
                assert_eq!(backend.requests().await, begun);
            }
            drop(store);
            backend = backend.crash().await;
        }
        assert!(backend.store().list_abandoned().await.unwrap().is_empty());
        assert_eq!(backend.requests().await, begun, "{steps}: counted once");
    }
}
