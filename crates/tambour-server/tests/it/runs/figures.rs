//! Figures of replies over time.

use tambour_server::store::{
    FigureStep, Figures, FirstTextTimes, MessageOutcome, ReplyCounts, RuleCount, RunEnd, WriteOutcome,
};

use super::{Backend, batch, begin_run, insert_conversation, new_run, run_end};

/// Figures of one reply that took `ms` to its first text.
fn reply_figures(hour: &str, owner: &str, upstream: &str, ms: u64) -> Figures {
    let repairs = vec![RuleCount { rule: "T-027".to_owned(), code: "tag_unclosed".to_owned(), count: 2 }];
    Figures {
        hour: hour.to_owned(),
        owner: owner.to_owned(),
        upstream: upstream.to_owned(),
        counts: ReplyCounts {
            completed: 1,
            repaired: 1,
            input_tokens: 10,
            cost: 25,
            ..ReplyCounts::default()
        },
        first_text: Some(FirstTextTimes::bucket(ms)),
        repairs,
    }
}

/// Completed replies, cost and median of each row.
async fn figure_rows(
    store: &dyn super::SuiteStore,
    owner: Option<&str>,
    step: FigureStep,
) -> Vec<(String, i64, i64, Option<u64>)> {
    let rows = store.figures(owner, ("2026-01-01", "2026-01-02"), step).await.unwrap();
    let summaries = rows.into_iter().map(|row| {
        let name = format!("{} {}", row.time, row.upstream);
        (name, row.counts.completed, row.counts.cost, row.first_text_times.quantile(0.5))
    });
    summaries.collect()
}

/// Step, code and number of the repairs of an owner.
async fn repair_counts(
    store: &dyn super::SuiteStore,
    step: FigureStep,
    rules: u32,
) -> Vec<(String, String, i64)> {
    let rows = store.repairs(Some("owner"), ("2026-01-01", "2026-01-02"), step, rules).await.unwrap();
    rows.into_iter().map(|row| (row.time, row.rule.code, row.rule.count)).collect()
}

pub(super) async fn figures_are_added_up_and_come_with_the_end<B: Backend>() {
    let backend = B::open().await;
    let store = &*backend.store();
    insert_conversation(store).await;
    let added_figures = [
        reply_figures("2025-12-31T23", "owner", "a", 100),
        reply_figures("2026-01-01T00", "owner", "a", 100),
        reply_figures("2026-01-01T00", "owner", "b", 7),
        reply_figures("2026-01-01T09", "other", "a", 3000),
        reply_figures("2026-01-02T23", "owner", "a", 400),
        reply_figures("2026-01-03T00", "owner", "a", 100),
    ];
    store.add_figures(&added_figures).await.unwrap();
    let mut lease = begin_run(store, new_run("msg")).await;
    lease.append(batch(1)).await.into_result().unwrap();
    let RunEnd { last, status, outcome } = run_end(super::ENTRIES + 1, 1, 0);
    let figures = vec![reply_figures("2026-01-01T00", "owner", "a", 100)];
    let outcome = MessageOutcome { figures, ..outcome };
    assert_eq!(lease.finish(RunEnd { last, status, outcome }).await, WriteOutcome::Stored);
    let row = |name: &str, completed, ms| (name.to_owned(), completed, completed * 25, Some(ms));
    let by_hour = [
        row("2026-01-01T00 a", 2, 108),
        row("2026-01-01T00 b", 1, 7),
        row("2026-01-01T09 a", 1, 2896),
        row("2026-01-02T23 a", 1, 431),
    ];
    assert_eq!(figure_rows(store, None, FigureStep::Hour).await, by_hour);
    // The middle of three.
    let figures = [row("2026-01-01 a", 3, 108), row("2026-01-01 b", 1, 7), row("2026-01-02 a", 1, 431)];
    assert_eq!(figure_rows(store, None, FigureStep::Day).await, figures);
    let other_rows = [row("2026-01-01 a", 1, 2896)];
    assert_eq!(figure_rows(store, Some("other"), FigureStep::Day).await, other_rows);
    let unclosed = |time: &str, count| (time.to_owned(), "tag_unclosed".to_owned(), count);
    let by_day = |first_count| vec![unclosed("2026-01-01", first_count), unclosed("2026-01-02", 2)];
    assert_eq!(repair_counts(store, FigureStep::Day, 10).await, by_day(6));
    let hours = vec![unclosed("2026-01-01T00", 6), unclosed("2026-01-02T23", 2)];
    assert_eq!(repair_counts(store, FigureStep::Hour, 10).await, hours);
    // Of more rules those that repaired most.
    let rare = RuleCount { rule: "T-001".to_owned(), code: "rare".to_owned(), count: 7 };
    let more_figures = Figures { repairs: vec![rare], ..reply_figures("2026-01-02T23", "owner", "a", 400) };
    store
        .add_figures(&[Figures { counts: ReplyCounts::default(), first_text: None, ..more_figures }])
        .await
        .unwrap();
    assert_eq!(repair_counts(store, FigureStep::Day, 1).await, by_day(6));
    assert_eq!(repair_counts(store, FigureStep::Day, 2).await.len(), 3);
    // An owner that takes over has both sums.
    store.hand_over("other", "owner").await.unwrap();
    assert_eq!(figure_rows(store, Some("owner"), FigureStep::Day).await, figures);
    assert!(figure_rows(store, Some("other"), FigureStep::Day).await.is_empty());
    assert_eq!(repair_counts(store, FigureStep::Day, 1).await, by_day(8));
    let backend = backend.crash().await;
    assert_eq!(
        figure_rows(&*backend.store(), None, FigureStep::Day).await,
        figures,
        "once also after a crash"
    );
}

#[test]
fn quantiles_are_within_a_tenth() {
    for ms in [1_u64, 2, 7, 80, 431, 5_000, 60_000, 900_000] {
        let mut times = FirstTextTimes::default();
        times.add(FirstTextTimes::bucket(ms), 3);
        let median = times.quantile(0.5).unwrap();
        assert!(median.abs_diff(ms) * 10 <= ms.max(10), "{ms}: {median}");
    }
    assert_eq!(FirstTextTimes::default().quantile(0.5), None);
    let mut times = FirstTextTimes::default();
    times.add(FirstTextTimes::bucket(u64::MAX), 1);
    times.add(FirstTextTimes::bucket(0), 9);
    assert_eq!(times.quantile(0.5), Some(1));
    assert_eq!(times.quantile(0.95), Some(1 << 20));
}
