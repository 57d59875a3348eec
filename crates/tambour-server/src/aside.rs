//! Work that takes long and waits for nothing: on threads of its own, a few at a time, so that the workers stay free for streams.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::http::problem::Problem;

/// Bytes of a request from which on its work is done here; less is done sooner than handed over.
pub(crate) const LONG: usize = 64 << 10;

/// Does work beside the workers.
pub(crate) struct Aside(Arc<Semaphore>);

impl Aside {
    /// As many at a time as half of the processors, since streams want them too.
    pub(crate) fn new() -> Aside {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Aside(Arc::new(Semaphore::new((processors / 2).max(1))))
    }

    /// Does the work when it is its turn. Nobody waits for it any more when the caller has gone; it still takes its turn
    /// until it is done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        // Nothing closes it.
        let turn = self.0.clone().acquire_owned().await.map_err(|_| Problem::internal())?;
        let done = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        done.await.map_err(|_| Problem::internal())
    }
}
