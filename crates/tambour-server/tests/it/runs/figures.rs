//! Figures of replies over time.

use tambour_server::store::{
    FigureStep, Figures, FirstTexts, MessageOutcome, ReplyCounts, RuleCount, RunEnd, WriteOutcome,
};

use super::{Backend, batch, begin, conversation, end, new};

/// Figures of one reply that took `ms` to its first text.
fn reply(hour: &str, owner: &str, upstream: &str, ms: u64) -> Figures {
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
        first_text: Some(FirstTexts::bucket(ms)),
        repairs,
    }
}

/// Completed replies, cost and median of each row.
async fn rows(
    store: &dyn super::Runs,
    owner: Option<&str>,
    step: FigureStep,
) -> Vec<(String, i64, i64, Option<u64>)> {
    let rows = store.figures(owner, ("2026-01-01", "2026-01-02"), step).await.unwrap();
    let shown = rows.into_iter().map(|row| {
        let name = format!("{} {}", row.time, row.upstream);
        (name, row.counts.completed, row.counts.cost, row.first_texts.quantile(0.5))
    });
    shown.collect()
}

/// Step, code and number of the repairs of an owner.
async fn repairs(store: &dyn super::Runs, step: FigureStep, rules: u32) -> Vec<(String, String, i64)> {
    let rows = store.repairs(Some("owner"), ("2026-01-01", "2026-01-02"), step, rules).await.unwrap();
    rows.into_iter().map(|row| (row.time, row.rule.code, row.rule.count)).collect()
}

pub(super) async fn figures_are_added_up_and_come_with_the_end<B: Backend>() {
    let backend = B::open().await;
    let store = &*backend.store();
    conversation(store).await;
    let given = [
        reply("2025-12-31T23", "owner", "a", 100),
        reply("2026-01-01T00", "owner", "a", 100),
        reply("2026-01-01T00", "owner", "b", 7),
        reply("2026-01-01T09", "other", "a", 3000),
        reply("2026-01-02T23", "owner", "a", 400),
        reply("2026-01-03T00", "owner", "a", 100),
    ];
    store.add_figures(&given).await.unwrap();
    let mut lease = begin(store, new("msg")).await;
    lease.append(batch(1)).await.into_result().unwrap();
    let RunEnd { last, status, outcome } = end(super::ENTRIES + 1, 1, 0);
    let figures = vec![reply("2026-01-01T00", "owner", "a", 100)];
    let outcome = MessageOutcome { figures, ..outcome };
    assert_eq!(lease.finish(RunEnd { last, status, outcome }).await, WriteOutcome::Stored);
    let row = |name: &str, completed, ms| (name.to_owned(), completed, completed * 25, Some(ms));
    let by_hour = [
        row("2026-01-01T00 a", 2, 108),
        row("2026-01-01T00 b", 1, 7),
        row("2026-01-01T09 a", 1, 2896),
        row("2026-01-02T23 a", 1, 431),
    ];
    assert_eq!(rows(store, None, FigureStep::Hour).await, by_hour);
    // The middle of three.
    let figures = [row("2026-01-01 a", 3, 108), row("2026-01-01 b", 1, 7), row("2026-01-02 a", 1, 431)];
    assert_eq!(rows(store, None, FigureStep::Day).await, figures);
    let of_other = [row("2026-01-01 a", 1, 2896)];
    assert_eq!(rows(store, Some("other"), FigureStep::Day).await, of_other);
    let unclosed = |time: &str, count| (time.to_owned(), "tag_unclosed".to_owned(), count);
    let by_day = |first| vec![unclosed("2026-01-01", first), unclosed("2026-01-02", 2)];
    assert_eq!(repairs(store, FigureStep::Day, 10).await, by_day(6));
    let hours = vec![unclosed("2026-01-01T00", 6), unclosed("2026-01-02T23", 2)];
    assert_eq!(repairs(store, FigureStep::Hour, 10).await, hours);
    // Of more rules those that repaired most.
    let rare = RuleCount { rule: "T-001".to_owned(), code: "rare".to_owned(), count: 7 };
    let more = Figures { repairs: vec![rare], ..reply("2026-01-02T23", "owner", "a", 400) };
    store.add_figures(&[Figures { counts: ReplyCounts::default(), first_text: None, ..more }]).await.unwrap();
    assert_eq!(repairs(store, FigureStep::Day, 1).await, by_day(6));
    assert_eq!(repairs(store, FigureStep::Day, 2).await.len(), 3);
    // The new owner has both sums.
    store.hand_over("other", "owner").await.unwrap();
    assert_eq!(rows(store, Some("owner"), FigureStep::Day).await, figures);
    assert!(rows(store, Some("other"), FigureStep::Day).await.is_empty());
    assert_eq!(repairs(store, FigureStep::Day, 1).await, by_day(8));
    let backend = backend.crash().await;
    assert_eq!(rows(&*backend.store(), None, FigureStep::Day).await, figures, "once also after a crash");
}

#[test]
fn quantiles_are_within_a_tenth() {
    for ms in [1_u64, 2, 7, 80, 431, 5_000, 60_000, 900_000] {
        let mut times = FirstTexts::default();
        times.add(FirstTexts::bucket(ms), 3);
        let told = times.quantile(0.5).unwrap();
        assert!(told.abs_diff(ms) * 10 <= ms.max(10), "{ms}: {told}");
    }
    assert_eq!(FirstTexts::default().quantile(0.5), None);
    let mut times = FirstTexts::default();
    times.add(FirstTexts::bucket(u64::MAX), 1);
    times.add(FirstTexts::bucket(0), 9);
    assert_eq!(times.quantile(0.5), Some(1));
    assert_eq!(times.quantile(0.95), Some(1 << 20));
}
