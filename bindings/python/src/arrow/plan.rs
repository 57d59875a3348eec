//! A batch function: what is read from a batch, how, and what becomes of it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use tambour_bindings::batch::RowReader;

use super::columns::build_column;
use super::texts::Texts;
use super::work::read_rows;

/// Bytes of text of a batch of a stream; larger ones are cut, so that memory is bounded.
const MAX_STREAM_BYTES: usize = 64 << 20;
/// Rows of a batch of a stream.
const MAX_STREAM_ROWS: usize = 1 << 16;

/// A batch function.
pub(super) struct BatchPlan {
    pub(super) reader: RowReader,
    /// Column with the replies.
    pub(super) column: String,
    /// Columns of the result.
    pub(super) columns: Vec<&'static str>,
    /// Text before the name of each column of the result.
    pub(super) prefix: String,
    /// Columns of the input that stay.
    pub(super) kept: KeptColumns,
    /// Largest number of threads.
    pub(super) threads: usize,
}

/// Columns of the input that are in the result too, before the others.
pub(super) enum KeptColumns {
    All,
    Named(Vec<String>),
}

impl BatchPlan {
    /// Schema of the results of batches with `schema`.
    ///
    /// # Errors
    /// A column is missing or has the wrong type, or two columns of the result would have one name.
    pub(super) fn schema(&self, schema: &SchemaRef) -> Result<SchemaRef, ArrowError> {
        Ok(self.run(&RecordBatch::new_empty(Arc::clone(schema)))?.schema())
    }

    /// Runs the function on a batch.
    ///
    /// # Errors
    /// As [`BatchPlan::schema`], or a column of the result is too large.
    pub(super) fn run(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let texts = self.texts(batch)?;
        let schema = batch.schema();
        let mut fields: Vec<Field> = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        for index in self.kept_indices(&schema)? {
            fields.push(schema.field(index).clone());
            columns.push(Arc::clone(batch.column(index)));
        }
        let rows = read_rows(&self.reader, &texts, self.threads);
        for name in &self.columns {
            let column = build_column(name, &rows)?;
            let name = format!("{}{name}", self.prefix);
            if fields.iter().any(|field| *field.name() == name) {
                let message =
                    format!("two columns are called `{name}`; choose `columns`, `keep` or `prefix`");
                return Err(ArrowError::SchemaError(message));
            }
            fields.push(Field::new(name, column.data_type().clone(), true));
            columns.push(column);
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(schema, columns, &options)
    }

    fn texts(&self, batch: &RecordBatch) -> Result<Texts, ArrowError> {
        let index = find_column(&batch.schema(), &self.column)?;
        Texts::new(batch.column(index), &self.column)
    }

    fn kept_indices(&self, schema: &Schema) -> Result<Vec<usize>, ArrowError> {
        match &self.kept {
            KeptColumns::All => Ok((0..schema.fields().len()).collect()),
            KeptColumns::Named(names) => names.iter().map(|name| find_column(schema, name)).collect(),
        }
    }

    /// Cuts a batch of a stream into batches of bounded size.
    fn cut(&self, batch: &RecordBatch) -> Result<Vec<RecordBatch>, ArrowError> {
        let texts = self.texts(batch)?;
        let (mut parts, mut start, mut bytes) = (Vec::new(), 0, 0);
        for row in 0..texts.len() {
            let size = texts.size(row);
            if row > start && (bytes + size > MAX_STREAM_BYTES || row - start >= MAX_STREAM_ROWS) {
                parts.push(batch.slice(start, row - start));
                (start, bytes) = (row, 0);
            }
            bytes += size;
        }
        if start < texts.len() {
            parts.push(batch.slice(start, texts.len() - start));
        }
        Ok(parts)
    }
}

fn find_column(schema: &Schema, name: &str) -> Result<usize, ArrowError> {
    schema.index_of(name).map_err(|_| {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        ArrowError::SchemaError(format!("there is no column `{name}`; there are {}", names.join(", ")))
    })
}

/// Runs `work`; a panic becomes an error, since none may reach a caller in another language.
pub(super) fn guard<T>(work: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ArrowError::ComputeError("the batch could not be read".to_owned())))
}

/// Results of a stream, one batch at a time. After an error it has ended.
pub(super) struct ResultReader {
    plan: Arc<BatchPlan>,
    /// `None` after the end.
    input: Option<RecordBatchStreamReader>,
    /// Parts of the last batch that are still to be read.
    parts: VecDeque<RecordBatch>,
    schema: SchemaRef,
}

impl ResultReader {
    /// Reader of the results of `plan` on a stream.
    ///
    /// # Errors
    /// As [`BatchPlan::schema`].
    pub(super) fn new(
        plan: Arc<BatchPlan>,
        input: RecordBatchStreamReader,
    ) -> Result<ResultReader, ArrowError> {
        let schema = plan.schema(&input.schema())?;
        Ok(ResultReader { plan, input: Some(input), parts: VecDeque::new(), schema })
    }

    fn read_next(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return self.plan.run(&part).map(Some);
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next().transpose()? {
                Some(batch) => self.parts.extend(self.plan.cut(&batch)?),
                None => self.input = None,
            }
        }
    }
}

impl Iterator for ResultReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = guard(|| self.read_next()).transpose();
        if matches!(result, None | Some(Err(_))) {
            self.input = None;
            self.parts.clear();
        }
        result
    }
}

impl RecordBatchReader for ResultReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
