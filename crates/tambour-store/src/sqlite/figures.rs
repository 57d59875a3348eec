//! Rows of figures. New figures are added to the existing row with the same key, if there is one.

use async_trait::async_trait;
use sqlx::SqliteConnection;

use super::SqliteStore;
use super::transaction::OpenTransaction;
use crate::figures::merge_first_texts;
use crate::{FigureStep, Figures, ReplyFigures, RuleCount, StepFigures, StepRepairs, StoreError};

/// Conflict clause that adds to the existing row of `figures` with the same key.
const ADD_FIGURES: &str = "on conflict do update set completed = completed + excluded.completed, \
     failed = failed + excluded.failed, cancelled = cancelled + excluded.cancelled, \
     repaired = repaired + excluded.repaired, replaced = replaced + excluded.replaced, \
     input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens, \
     unpriced_tokens = unpriced_tokens + excluded.unpriced_tokens, cost = cost + excluded.cost";
/// Conflict clause that adds to the existing row of `first_texts` or `repairs`, which have one count.
const ADD_COUNT: &str = "on conflict do update set count = count + excluded.count";

#[async_trait]
impl ReplyFigures for SqliteStore {
    async fn add_figures(&self, figures: &[Figures]) -> Result<(), StoreError> {
        let mut transaction = OpenTransaction::begin(self.pool()).await?;
        let result = add_figures(&mut transaction, figures).await;
        Ok(transaction.end(result).await?)
    }

    async fn figures(
        &self,
        owner: Option<&str>,
        (from, to): (&str, &str),
        step: FigureStep,
    ) -> Result<Vec<StepFigures>, StoreError> {
        // Figures of messages are stored with their records.
        self.wait_caught_up().await?;
        // `'U'` follows the `T` of an hour: all hours of the last day are before it.
        let query = sqlx::query_as(
            "select substr(hour, 1, ?4) as time, upstream, sum(completed) as completed, sum(failed) as failed, \
             sum(cancelled) as cancelled, sum(repaired) as repaired, sum(replaced) as replaced, \
             sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens, \
             sum(unpriced_tokens) as unpriced_tokens, sum(cost) as cost from figures \
             where hour >= ?2 and hour < ?3 || 'U' and (?1 is null or owner = ?1) group by 1, 2 order by 1, 2",
        );
        let query = query.bind(owner).bind(from).bind(to).bind(step.hour_prefix_len());
        let mut rows: Vec<StepFigures> = query.fetch_all(self.pool()).await?;
        let query = sqlx::query_as(
            "select substr(hour, 1, ?4), upstream, bucket, sum(count) from first_texts \
             where hour >= ?2 and hour < ?3 || 'U' and (?1 is null or owner = ?1) group by 1, 2, 3 order by 1, 2, 3",
        );
        let query = query.bind(owner).bind(from).bind(to).bind(step.hour_prefix_len());
        let counts: Vec<(String, String, i64, i64)> = query.fetch_all(self.pool()).await?;
        merge_first_texts(&mut rows, counts);
        Ok(rows)
    }

    async fn repairs(
        &self,
        owner: Option<&str>,
        (from, to): (&str, &str),
        step: FigureStep,
        max_rules: u32,
    ) -> Result<Vec<StepRepairs>, StoreError> {
        // Rows of older versions have a day in place of the hour: they count for its first hour.
        let query = sqlx::query_as(
            "with selected as materialized (select substr(hour || 'T00', 1, ?4) as time, rule, code, count from repairs \
             where hour >= ?2 and hour < ?3 || 'U' and (?1 is null or owner = ?1)), \
             top_rules as (select rule, code from selected group by 1, 2 order by sum(count) desc, 1, 2 limit ?5) \
             select time, rule, code, sum(count) from selected join top_rules using (rule, code) group by 1, 2, 3 order by 1, 2, 3",
        );
        let query = query.bind(owner).bind(from).bind(to).bind(step.hour_prefix_len()).bind(max_rules);
        let rows: Vec<(String, String, String, i64)> = query.fetch_all(self.pool()).await?;
        let row = |(time, rule, code, count)| StepRepairs { time, rule: RuleCount { rule, code, count } };
        Ok(rows.into_iter().map(row).collect())
    }
}

/// Adds figures to those stored for their hours.
pub(super) async fn add_figures(connection: &mut SqliteConnection, figures: &[Figures]) -> sqlx::Result<()> {
    for Figures { hour, owner, upstream, counts, first_text, repairs } in figures {
        let query = sqlx::query(sqlx::AssertSqlSafe(format!(
            "insert into figures values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) {ADD_FIGURES}"
        )));
        let query = query.bind(hour).bind(owner).bind(upstream).bind(counts.completed).bind(counts.failed);
        let query = query.bind(counts.cancelled).bind(counts.repaired).bind(counts.replaced);
        let query = query.bind(counts.input_tokens).bind(counts.output_tokens);
        let query = query.bind(counts.unpriced_tokens).bind(counts.cost);
        query.execute(&mut *connection).await?;
        if let Some(bucket) = first_text {
            let query = sqlx::query(sqlx::AssertSqlSafe(format!(
                "insert into first_texts values (?, ?, ?, ?, 1) {ADD_COUNT}"
            )));
            query.bind(hour).bind(owner).bind(upstream).bind(bucket).execute(&mut *connection).await?;
        }
        for RuleCount { rule, code, count } in repairs {
            let query = sqlx::query(sqlx::AssertSqlSafe(format!(
                "insert into repairs values (?, ?, ?, ?, ?) {ADD_COUNT}"
            )));
            let query = query.bind(hour).bind(owner).bind(rule).bind(code).bind(count);
            query.execute(&mut *connection).await?;
        }
    }
    Ok(())
}

/// Transfers figures from one owner to another.
pub(super) async fn hand_over(connection: &mut SqliteConnection, from: &str, to: &str) -> sqlx::Result<()> {
    for (table, columns, on_conflict) in [
        (
            "figures",
            "upstream, completed, failed, cancelled, repaired, replaced, input_tokens, output_tokens, unpriced_tokens, cost",
            ADD_FIGURES,
        ),
        ("first_texts", "upstream, bucket, count", ADD_COUNT),
        ("repairs", "rule, code, count", ADD_COUNT),
    ] {
        let query = sqlx::query(sqlx::AssertSqlSafe(format!(
            "insert into {table} select hour, ?2, {columns} from {table} where owner = ?1 {on_conflict}; \
             delete from {table} where owner = ?1"
        )));
        query.bind(from).bind(to).execute(&mut *connection).await?;
    }
    Ok(())
}
