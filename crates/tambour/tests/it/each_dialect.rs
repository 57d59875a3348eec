//! Work for each dialect.

use tambour::dialect::DIALECTS;

/// Runs `work` for each dialect in its own thread and returns the results. The environment variable named `only` restricts it
/// to one dialect.
pub(crate) fn each_dialect<T: Send>(
    only: &str,
    work: impl Fn(&'static str) -> T + Sync,
) -> Vec<(&'static str, T)> {
    let only = std::env::var(only).ok();
    std::thread::scope(|scope| {
        let start = |name: &'static str| {
            let work = &work;
            (name, scope.spawn(move || work(name)))
        };
        let entries = DIALECTS.iter().filter(|entry| only.as_deref().is_none_or(|only| only == entry.name));
        let threads: Vec<_> = entries.map(|entry| start(entry.name)).collect();
        threads.into_iter().map(|(name, thread)| (name, thread.join().expect("no reading panics"))).collect()
    })
}
