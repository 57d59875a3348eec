//! Rows of figures. New figures are added to the existing row with the same key, if there is one.

use super::PostgresStore;
use super::connection::DatabaseConnection;
use crate::figures::merge_first_texts;
use crate::{FigureStep, Figures, ReplyFigures, RuleCount, StepFigures, StepRepairs, StoreError};
use async_trait::async_trait;

/// Conflict clause that adds to the existing row of `figures` with the same key.
macro_rules! add_figures {
    () => {
        " on conflict (hour, owner, upstream) do update set completed = figures.completed + excluded.completed, \
         failed = figures.failed + excluded.failed, cancelled = figures.cancelled + excluded.cancelled, \
         repaired = figures.repaired + excluded.repaired, replaced = figures.replaced + excluded.replaced, \
         input_tokens = figures.input_tokens + excluded.input_tokens, \
         output_tokens = figures.output_tokens + excluded.output_tokens, \
         unpriced_tokens = figures.unpriced_tokens + excluded.unpriced_tokens, \
         cost = figures.cost + excluded.cost"
    };
}

/// The same for `first_texts`, which have one count.
macro_rules! add_first_texts {
    () => {
        " on conflict (hour, owner, upstream, bucket) do update set count = first_texts.count + excluded.count"
    };
}

/// The same for `repairs`.
macro_rules! add_repairs {
    () => {
        " on conflict (hour, owner, rule, code) do update set count = repairs.count + excluded.count"
    };
}

#[async_trait]
impl ReplyFigures for PostgresStore {
    async fn add_figures(&self, figures: &[Figures]) -> Result<(), StoreError> {
        let mut transaction = self.pool().begin().await?;
        add_figures(&mut transaction, figures).await?;
        Ok(transaction.commit().await?)
    }

    async fn figures(
        &self,
        owner: Option<&str>,
        (from, to): (&str, &str),
        step: FigureStep,
    ) -> Result<Vec<StepFigures>, StoreError> {
        // `'U'` follows the `T` of an hour: all hours of the last day are before it.
        let query = sqlx::query_as(
            "select substr(hour, 1, $4) as time, upstream, cast(sum(completed) as bigint) as completed, \
             cast(sum(failed) as bigint) as failed, cast(sum(cancelled) as bigint) as cancelled, \
             cast(sum(repaired) as bigint) as repaired, cast(sum(replaced) as bigint) as replaced, \
             cast(sum(input_tokens) as bigint) as input_tokens, \
             cast(sum(output_tokens) as bigint) as output_tokens, \
             cast(sum(unpriced_tokens) as bigint) as unpriced_tokens, cast(sum(cost) as bigint) as cost \
             from figures where hour >= $2 and hour < $3 || 'U' and ($1::text is null or owner = $1) \
             group by 1, 2 order by 1, 2",
        );
        let prefix_len = hour_prefix_len(step);
        let query = query.bind(owner).bind(from).bind(to).bind(prefix_len);
        let mut rows: Vec<StepFigures> = query.fetch_all(self.pool()).await?;
        let query = sqlx::query_as(
            "select substr(hour, 1, $4), upstream, bucket, cast(sum(count) as bigint) from first_texts \
             where hour >= $2 and hour < $3 || 'U' and ($1::text is null or owner = $1) \
             group by 1, 2, 3 order by 1, 2, 3",
        );
        let query = query.bind(owner).bind(from).bind(to).bind(prefix_len);
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
            "with selected as materialized (select substr(hour || 'T00', 1, $4) as time, rule, code, count \
             from repairs where hour >= $2 and hour < $3 || 'U' and ($1::text is null or owner = $1)), \
             top_rules as (select rule, code from selected group by 1, 2 order by sum(count) desc, 1, 2 limit $5) \
             select time, rule, code, cast(sum(count) as bigint) from selected join top_rules using (rule, code) \
             group by 1, 2, 3 order by 1, 2, 3",
        );
        let query = query.bind(owner).bind(from).bind(to).bind(hour_prefix_len(step));
        let rows: Vec<(String, String, String, i64)> =
            query.bind(i64::from(max_rules)).fetch_all(self.pool()).await?;
        let row = |(time, rule, code, count)| StepRepairs { time, rule: RuleCount { rule, code, count } };
        Ok(rows.into_iter().map(row).collect())
    }
}

/// Returns the length of a step's time, as a parameter of `substr`.
fn hour_prefix_len(step: FigureStep) -> i32 {
    i32::try_from(step.hour_prefix_len()).unwrap_or(i32::MAX)
}

/// Adds figures to those stored for their hours.
pub(super) async fn add_figures(
    connection: &mut DatabaseConnection,
    figures: &[Figures],
) -> sqlx::Result<()> {
    // Transactions add rows in the same order, so that they cannot deadlock.
    let mut figures: Vec<&Figures> = figures.iter().collect();
    figures.sort_by(|a, b| (&a.hour, &a.owner, &a.upstream).cmp(&(&b.hour, &b.owner, &b.upstream)));
    for Figures { hour, owner, upstream, counts, first_text, repairs } in figures {
        let query = sqlx::query(concat!(
            "insert into figures (hour, owner, upstream, completed, failed, cancelled, repaired, replaced, \
             input_tokens, output_tokens, unpriced_tokens, cost) \
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            add_figures!()
        ));
        let query = query.bind(hour).bind(owner).bind(upstream).bind(counts.completed).bind(counts.failed);
        let query = query.bind(counts.cancelled).bind(counts.repaired).bind(counts.replaced);
        let query = query.bind(counts.input_tokens).bind(counts.output_tokens);
        query.bind(counts.unpriced_tokens).bind(counts.cost).execute(&mut *connection).await?;
        if let Some(bucket) = first_text {
            let query = sqlx::query(concat!(
                "insert into first_texts (hour, owner, upstream, bucket, count) values ($1, $2, $3, $4, 1)",
                add_first_texts!()
            ));
            let query = query.bind(hour).bind(owner).bind(upstream).bind(i64::from(*bucket));
            query.execute(&mut *connection).await?;
        }
        let mut repairs: Vec<&RuleCount> = repairs.iter().collect();
        repairs.sort_by(|a, b| (&a.rule, &a.code).cmp(&(&b.rule, &b.code)));
        for RuleCount { rule, code, count } in repairs {
            let query = sqlx::query(concat!(
                "insert into repairs (hour, owner, rule, code, count) values ($1, $2, $3, $4, $5)",
                add_repairs!()
            ));
            let query = query.bind(hour).bind(owner).bind(rule).bind(code).bind(count);
            query.execute(&mut *connection).await?;
        }
    }
    Ok(())
}

/// Transfers figures from one owner to another.
pub(super) async fn hand_over(connection: &mut DatabaseConnection, from: &str, to: &str) -> sqlx::Result<()> {
    for statement in [
        concat!(
            "insert into figures (hour, owner, upstream, completed, failed, cancelled, repaired, replaced, \
             input_tokens, output_tokens, unpriced_tokens, cost) select hour, $2, upstream, completed, failed, \
             cancelled, repaired, replaced, input_tokens, output_tokens, unpriced_tokens, cost from figures \
             where owner = $1",
            add_figures!()
        ),
        concat!(
            "insert into first_texts (hour, owner, upstream, bucket, count) \
             select hour, $2, upstream, bucket, count from first_texts where owner = $1",
            add_first_texts!()
        ),
        concat!(
            "insert into repairs (hour, owner, rule, code, count) \
             select hour, $2, rule, code, count from repairs where owner = $1",
            add_repairs!()
        ),
    ] {
        sqlx::query(statement).bind(from).bind(to).execute(&mut *connection).await?;
    }
    for statement in [
        "delete from figures where owner = $1",
        "delete from first_texts where owner = $1",
        "delete from repairs where owner = $1",
    ] {
        sqlx::query(statement).bind(from).execute(&mut *connection).await?;
    }
    Ok(())
}
