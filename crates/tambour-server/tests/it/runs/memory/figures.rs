//! Figures of the store in memory: stored one by one, and summed when they are read.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tambour_server::store::{
    FigureStep, Figures, FirstTextTimes, ReplyCounts, ReplyFigures, RuleCount, StepFigures, StepRepairs,
    StoreError,
};

use super::MemoryStore;

#[async_trait]
impl ReplyFigures for MemoryStore {
    async fn add_figures(&self, figures: &[Figures]) -> Result<(), StoreError> {
        self.data().figures.extend_from_slice(figures);
        Ok(())
    }

    async fn figures(
        &self,
        owner: Option<&str>,
        (from, to): (&str, &str),
        step: FigureStep,
    ) -> Result<Vec<StepFigures>, StoreError> {
        let data = self.data();
        let mut rows: BTreeMap<(String, String), StepFigures> = BTreeMap::new();
        for reply in data.figures.iter().filter(|reply| is_counted(reply, owner, (from, to))) {
            let (time, upstream) =
                (reply.hour[..step.hour_prefix_len() as usize].to_owned(), reply.upstream.clone());
            let row = rows.entry((time.clone(), upstream.clone())).or_insert_with(|| StepFigures {
                time,
                upstream,
                counts: ReplyCounts::default(),
                first_text_times: FirstTextTimes::default(),
            });
            row.counts.add(&reply.counts);
            reply.first_text.into_iter().for_each(|bucket| row.first_text_times.add(bucket, 1));
        }
        Ok(rows.into_values().collect())
    }

    async fn repairs(
        &self,
        owner: Option<&str>,
        days: (&str, &str),
        step: FigureStep,
        rules: u32,
    ) -> Result<Vec<StepRepairs>, StoreError> {
        let data = self.data();
        let mut sums: BTreeMap<(String, String, String), i64> = BTreeMap::new();
        let mut totals: BTreeMap<(String, String), i64> = BTreeMap::new();
        for entry in data.figures.iter().filter(|entry| is_counted(entry, owner, days)) {
            for RuleCount { rule, code, count } in &entry.repairs {
                let time = entry.hour[..step.hour_prefix_len() as usize].to_owned();
                *sums.entry((time, rule.clone(), code.clone())).or_default() += count;
                *totals.entry((rule.clone(), code.clone())).or_default() += count;
            }
        }
        let mut top_rules: Vec<_> = totals.into_iter().collect();
        top_rules.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        top_rules.truncate(rules as usize);
        let sums = sums.into_iter().filter(|((_, rule, code), _)| {
            top_rules.iter().any(|((entry, rule_code), _)| (entry, rule_code) == (rule, code))
        });
        let row = |((time, rule, code), count)| StepRepairs { time, rule: RuleCount { rule, code, count } };
        Ok(sums.map(row).collect())
    }
}

/// Returns true if figures belong to an owner and to a range of days.
fn is_counted(reply: &Figures, owner: Option<&str>, (from, to): (&str, &str)) -> bool {
    owner.is_none_or(|owner| reply.owner == owner) && (from..=to).contains(&&reply.hour[..10])
}
