//! Reader of a simulation: follows a log on one server after another, to its end.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::stream::StreamExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::checker::is_end;
use super::server::{Server, World};
use crate::Batch;

/// Client that follows a log.
pub(super) struct Reader {
    pub(super) world: World,
    /// Servers as they have started last.
    pub(super) servers: Arc<Mutex<Vec<Server>>>,
    pub(super) name: String,
    /// Id of the message.
    pub(super) run: String,
}

impl Reader {
    /// Follows the log to its end.
    pub(super) async fn read(self) {
        let scheduler = &self.world.scheduler;
        let mut last = 0;
        loop {
            let server = {
                let servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
                servers[scheduler.index(servers.len())].clone()
            };
            if self.follow(&server, &mut last).await {
                scheduler.trace(format_args!("{} has read {} to its end, {last}", self.name, self.run));
                return;
            }
            scheduler.pause(10, 80).await;
        }
    }

    /// Follows the log on one server. Returns `true` at its end, `false` if the server does not go on.
    async fn follow(&self, server: &Server, last: &mut u64) -> bool {
        let scheduler = &self.world.scheduler;
        if scheduler.is_dead(server.process) {
            return false;
        }
        let (sender, mut receiver) = mpsc::channel(2);
        let stream = send_batches(server.clone(), self.run.clone(), self.name.clone(), *last, sender);
        scheduler.spawn(Some(server.process), stream);
        let patience = Duration::from_millis(scheduler.between(150, 1500));
        let most_batches = scheduler.between(1, 20);
        for _ in 0..most_batches {
            let Ok(Some(batch)) = timeout(patience, receiver.recv()).await else { return false };
            self.world.checker.check_shown(&self.run, &self.name, *last, &batch);
            *last = batch.last();
            if batch.body().split_inclusive(|byte| *byte == b'\n').any(is_end) {
                return true;
            }
        }
        false
    }
}

/// Sends the batches of a log while the reader is there.
async fn send_batches(server: Server, run: String, reader: String, after: u64, sender: mpsc::Sender<Batch>) {
    let Some(runs) = server.runs() else { return };
    let world = server.world();
    let bytes = if world.scheduler.chance(30) { 100 } else { 1 << 14 };
    let (mut last, mut batches) = (after, runs.follow(&run, after, bytes));
    loop {
        let batch = tokio::select! {
            biased;
            () = sender.closed() => return,
            batch = batches.next() => batch,
        };
        let Some(Ok(batch)) = batch else { return };
        // Shown now: what the network does with it comes later.
        world.checker.check_shown(&run, &reader, last, &batch);
        last = batch.last();
        world.scheduler.pause(0, 3).await;
        if sender.send(batch).await.is_err() {
            return;
        }
    }
}
