//! The log of a message as its interface promises it, whatever is behind.

use std::time::Duration;

use futures_util::StreamExt;
use tambour_server::store::{Batch, Log, MessageRow, Messages as _, SqliteStore, Store, StoreError};

use crate::server::Folder;

/// Entries of one batch.
const ENTRIES: u64 = 10;

async fn store(folder: &Folder, durable: bool) -> SqliteStore {
    let store = SqliteStore::open(&folder.0.join("tambour.db"), durable).await.unwrap();
    let row = MessageRow {
        id: "msg".to_owned(),
        conversation_id: "conv".to_owned(),
        status: "running".to_owned(),
        ..MessageRow::default()
    };
    store.insert_message(&row).unwrap().await.unwrap();
    store
}

/// A batch from entry `first` on, the last of the log if `ends`.
fn batch(first: u64, ends: bool) -> Batch {
    let mut batch = Batch::new(first);
    (first..first + ENTRIES).for_each(|number| batch.raw(number, &format!("entry {number} {:>500}", "")));
    if ends {
        batch.event("completed", |out| out.extend_from_slice(b"{}"));
    }
    batch
}

/// Appends batches until there are `count`, the last with the end if `ends`.
async fn write(log: &dyn Store, count: u64, ends: bool) {
    let epoch = log.own().epoch;
    for at in 0..count {
        log.append("msg", epoch, batch(at * ENTRIES + 1, ends && at + 1 == count)).await.unwrap();
        // Followers come between.
        tokio::task::yield_now().await;
    }
}

/// All numbers that a follower sees behind `after`.
async fn followed(log: &dyn Log, after: u64) -> Vec<u64> {
    let batches: Vec<_> = log.follow("msg", after, 4 << 10).collect().await;
    let mut numbers = Vec::new();
    for batch in batches {
        numbers.extend(batch.unwrap().entries().map(|entry| entry.number).filter(|number| *number > after));
    }
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_see_all_of_it_once_and_in_order_however_late_they_come() {
    const BATCHES: u64 = 60;
    for durable in [false, true] {
        let folder = Folder::new();
        let store = store(&folder, durable).await;
        let all = BATCHES * ENTRIES + 1;
        // One from the beginning, one from the middle, and one that begins when memory has let go of what it wants.
        let late = async {
            loop {
                let read = store.read("msg", all - 2, 1).await.unwrap();
                if !read.is_empty() {
                    return followed(&store, 3).await;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let writing = async {
            write(&store, BATCHES, true).await;
            store.end("msg").await;
        };
        let ((), first, middle, late) =
            tokio::join!(writing, followed(&store, 0), followed(&store, all / 2), late);
        assert_eq!(first, (1..=all).collect::<Vec<_>>(), "{durable}");
        assert_eq!(middle, (all / 2 + 1..=all).collect::<Vec<_>>(), "{durable}");
        assert_eq!(late, (4..=all).collect::<Vec<_>>(), "{durable}");
        // The database alone has it.
        store.ready().await.unwrap();
        assert_eq!(followed(&store, 5).await, (6..=all).collect::<Vec<_>>(), "{durable}");
        assert!(followed(&store, all).await.is_empty());
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_stops_lets_its_followers_go() {
    let folder = Folder::new();
    let store = store(&folder, false).await;
    write(&store, 2, false).await;
    let mut follower = store.follow("msg", 0, 1 << 20);
    assert_eq!(follower.next().await.unwrap().unwrap().last(), 2 * ENTRIES);
    // It waits for more, until it is told that nothing comes.
    let waits = tokio::time::timeout(Duration::from_millis(20), follower.next()).await;
    assert!(waits.is_err());
    store.end("msg").await;
    assert!(follower.next().await.is_none());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_was_superseded_writes_nothing() {
    let folder = Folder::new();
    let before = store(&folder, false).await;
    let epoch = before.own().epoch;
    write(&before, 1, false).await;
    before.close().await;
    let store = SqliteStore::open(&folder.0.join("tambour.db"), false).await.unwrap();
    let refused = store.append("msg", epoch, batch(ENTRIES + 1, true)).await;
    assert!(matches!(refused, Err(StoreError::Superseded)), "{refused:?}");
    assert!(store.read("msg", ENTRIES, 1 << 20).await.unwrap().is_empty());
    store.append("msg", store.own().epoch, batch(ENTRIES + 1, true)).await.unwrap();
    assert_eq!(followed(&store, 0).await.len() as u64, 2 * ENTRIES + 1);
    store.close().await;
}
