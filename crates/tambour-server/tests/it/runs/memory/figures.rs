//! Figures of the store in memory: stored one by one, and summed when they are read.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tambour_server::store::{
    FigureStep, Figures, FirstTexts, ReplyCounts, ReplyFigures, RuleCount, StepFigures, StepRepairs,
    StoreError,
};

use super::Memory;

#[async_trait]
impl ReplyFigures for Memory {
    async fn add_figures(&self, more: &[Figures]) -> Result<(), StoreError> {
        self.data().figures.extend_from_slice(more);
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
        for one in data.figures.iter().filter(|one| counts(one, owner, (from, to))) {
            let (time, upstream) = (one.hour[..step.prefix() as usize].to_owned(), one.upstream.clone());
            let row = rows.entry((time.clone(), upstream.clone())).or_insert_with(|| StepFigures {
                time,
                upstream,
                counts: ReplyCounts::default(),
                first_texts: FirstTexts::default(),
            });
            row.counts.add(&one.counts);
            one.first_text.into_iter().for_each(|bucket| row.first_texts.add(bucket, 1));
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
        for one in data.figures.iter().filter(|one| counts(one, owner, days)) {
            for RuleCount { rule, code, count } in &one.repairs {
                let time = one.hour[..step.prefix() as usize].to_owned();
                *sums.entry((time, rule.clone(), code.clone())).or_default() += count;
                *totals.entry((rule.clone(), code.clone())).or_default() += count;
            }
        }
        let mut most: Vec<_> = totals.into_iter().collect();
        most.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        most.truncate(rules as usize);
        let sums = sums
            .into_iter()
            .filter(|((_, rule, code), _)| most.iter().any(|((one, its), _)| (one, its) == (rule, code)));
        let row = |((time, rule, code), count)| StepRepairs { time, rule: RuleCount { rule, code, count } };
        Ok(sums.map(row).collect())
    }
}

/// Returns true if figures belong to an owner and to a range of days.
fn counts(one: &Figures, owner: Option<&str>, (from, to): (&str, &str)) -> bool {
    owner.is_none_or(|owner| one.owner == owner) && (from..=to).contains(&&one.hour[..10])
}
