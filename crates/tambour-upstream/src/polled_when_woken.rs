//! Wrapper that polls its inner future only on that future's own wake-ups. In a `select!` together with a
//! busy stream, a future for a rare event would otherwise be polled at every chunk, and some of these futures
//! take locks that all streams share.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

/// Future that polls its inner future once at first, then only after the inner future was woken. Once it has
/// returned the output, it stays pending forever.
pub struct PolledWhenWoken<F>(FuturesUnordered<F>);

impl<F: Future> PolledWhenWoken<F> {
    /// Wraps a future.
    pub fn new(future: F) -> PolledWhenWoken<F> {
        let inner = FuturesUnordered::new();
        inner.push(future);
        PolledWhenWoken(inner)
    }
}

impl<F: Future> Future for PolledWhenWoken<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.0.poll_next_unpin(context) {
            Poll::Ready(Some(output)) => Poll::Ready(output),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::task::{Context, Poll, Waker};

    use super::PolledWhenWoken;

    #[test]
    fn it_is_polled_only_when_it_was_woken() {
        let (polls, inner_waker) = (Cell::new(0), Cell::new(None));
        let mut outer = std::pin::pin!(PolledWhenWoken::new(poll_fn(|context| {
            polls.set(polls.get() + 1);
            inner_waker.set(Some(context.waker().clone()));
            if polls.get() == 2 { Poll::Ready("done") } else { Poll::Pending }
        })));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            assert_eq!(outer.as_mut().poll(&mut context), Poll::Pending);
        }
        assert_eq!(polls.get(), 1);
        inner_waker.take().unwrap().wake();
        assert_eq!(outer.as_mut().poll(&mut context), Poll::Ready("done"));
        assert_eq!(outer.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(polls.get(), 2);
    }
}
