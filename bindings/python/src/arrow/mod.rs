//! Batches of replies, in and out as Arrow. Their documentation is in `python/tambour/arrow.py`.

mod capsule;
mod columns;
mod plan;
mod texts;
mod work;

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tambour::Profile;
use tambour_bindings::batch::RowReader;
use tambour_bindings::input_end::parse_end;

use crate::error::{ResultExt, convert_error};
use crate::pipeline::read_options;
use capsule::{ArrayCapsules, arrow_error, export_batch, export_schema, export_stream};
use columns::{CHECK_COLUMNS, DECODE_COLUMNS, REPAIRED};
use plan::{BatchPlan, KeptColumns, ResultReader, guard};

/// A function on batches, with all its arguments but the batch.
#[pyclass(module = "tambour._native", frozen)]
pub(crate) struct BatchFunction {
    plan: Arc<BatchPlan>,
}

/// Arguments that both functions have.
struct PlanArguments<'a, 'py> {
    column: String,
    keep: &'a Bound<'py, PyAny>,
    prefix: String,
    threads: Option<usize>,
}

#[pymethods]
impl BatchFunction {
    /// Function that checks replies against a contract.
    #[staticmethod]
    #[pyo3(signature = (column, contract, columns, keep, prefix, threads, options))]
    fn check(
        column: String,
        contract: &str,
        columns: Option<Vec<String>>,
        keep: &Bound<'_, PyAny>,
        prefix: String,
        threads: Option<usize>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<BatchFunction> {
        let py = keep.py();
        let options = read_options(py, options, Profile::Strict)?;
        let reader = RowReader::check(contract, options).or_raise(py)?;
        let columns = choose_columns(py, columns, CHECK_COLUMNS)?;
        make_function(reader, columns, PlanArguments { column, keep, prefix, threads })
    }

    /// Function that reads replies.
    #[staticmethod]
    #[pyo3(signature = (column, dialect, finish, columns, keep, prefix, threads, options))]
    #[expect(clippy::too_many_arguments, reason = "arguments of Python")]
    fn decode(
        column: String,
        dialect: &str,
        finish: Option<&str>,
        columns: Option<Vec<String>>,
        keep: &Bound<'_, PyAny>,
        prefix: String,
        threads: Option<usize>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<BatchFunction> {
        let py = keep.py();
        let options = read_options(py, options, Profile::Lenient)?;
        let end = parse_end(finish, false).or_raise(py)?;
        let columns = choose_columns(py, columns, DECODE_COLUMNS)?;
        let rewrites = columns.contains(&REPAIRED);
        let reader = RowReader::decode(dialect, options, end, rewrites).or_raise(py)?;
        make_function(reader, columns, PlanArguments { column, keep, prefix, threads })
    }

    /// Runs the function on an object with `__arrow_c_array__`.
    fn run_batch(&self, batch: &Bound<'_, PyAny>) -> PyResult<BatchResult> {
        let input = capsule::import_batch(batch, &self.plan.column)?;
        let plan = Arc::clone(&self.plan);
        let batch = batch.py().detach(|| guard(|| plan.run(&input))).map_err(arrow_error)?;
        Ok(BatchResult { batch })
    }

    /// Runs the function on an object with `__arrow_c_stream__`: now on all its batches, or with `lazy` on
    /// each when it is asked for.
    fn run_stream(&self, stream: &Bound<'_, PyAny>, lazy: bool) -> PyResult<StreamResult> {
        let py = stream.py();
        let input = capsule::import_stream(stream)?;
        let reader = ResultReader::new(Arc::clone(&self.plan), input).map_err(arrow_error)?;
        let schema = reader.schema();
        let source = if lazy {
            StreamSource::Reader(Some(Box::new(reader)))
        } else {
            let batches = py.detach(|| reader.collect::<Result<Vec<RecordBatch>, _>>());
            StreamSource::Batches(batches.map_err(arrow_error)?)
        };
        Ok(StreamResult { schema, source: Mutex::new(source) })
    }
}

/// A batch of results.
#[pyclass(module = "tambour._native", frozen)]
pub(crate) struct BatchResult {
    batch: RecordBatch,
}

#[pymethods]
impl BatchResult {
    /// Schema and array in capsules of the Arrow interface. The requested schema is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<ArrayCapsules<'py>> {
        let _ = requested_schema;
        export_batch(py, &self.batch)
    }

    /// Schema in a capsule of the Arrow interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.batch.schema())
    }

    /// Stream of this one batch in a capsule of the Arrow interface. The requested schema is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        export_stream(py, stream_of(vec![self.batch.clone()], self.batch.schema()))
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}

/// Results of a stream.
#[pyclass(module = "tambour._native", frozen)]
pub(crate) struct StreamResult {
    schema: SchemaRef,
    source: Mutex<StreamSource>,
}

/// Results that are there, or come when they are asked for.
enum StreamSource {
    Batches(Vec<RecordBatch>),
    /// `None` once somebody has taken it.
    Reader(Option<Box<ResultReader>>),
}

#[pymethods]
impl StreamResult {
    /// Stream in a capsule of the Arrow interface; one that comes when it is asked for can be taken once. The
    /// requested schema is ignored.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = match &mut *self.source.lock().unwrap_or_else(PoisonError::into_inner) {
            StreamSource::Batches(batches) => stream_of(batches.clone(), Arc::clone(&self.schema)),
            StreamSource::Reader(reader) => match reader.take() {
                Some(reader) => reader,
                None => return Err(PyValueError::new_err("the stream has been read already")),
            },
        };
        export_stream(py, reader)
    }

    /// Schema in a capsule of the Arrow interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, &self.schema)
    }
}

fn stream_of(batches: Vec<RecordBatch>, schema: SchemaRef) -> Box<dyn RecordBatchReader + Send> {
    Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema))
}

/// Chooses columns of the result by name; all of them for `None`.
fn choose_columns(
    py: Python<'_>,
    names: Option<Vec<String>>,
    known: &'static [&'static str],
) -> PyResult<Vec<&'static str>> {
    let Some(names) = names else { return Ok(known.to_vec()) };
    let find = |name: &String| {
        let found = known.iter().copied().find(|column| column == name);
        found
            .ok_or_else(|| convert_error(py, &tambour::Error::unknown("column", name, known.iter().copied())))
    };
    names.iter().map(find).collect()
}

fn make_function(
    reader: RowReader,
    columns: Vec<&'static str>,
    arguments: PlanArguments<'_, '_>,
) -> PyResult<BatchFunction> {
    let PlanArguments { column, keep, prefix, threads } = arguments;
    let kept = match keep.extract::<bool>() {
        Ok(true) => KeptColumns::All,
        Ok(false) => KeptColumns::Named(Vec::new()),
        Err(_) => KeptColumns::Named(
            keep.extract()
                .map_err(|_| PyTypeError::new_err("`keep` is a bool, or a list of names of columns"))?,
        ),
    };
    if threads == Some(0) {
        return Err(PyValueError::new_err("`threads` must be at least 1"));
    }
    let threads = work::thread_count(threads);
    let plan = BatchPlan { reader, column, columns, prefix, kept, threads };
    Ok(BatchFunction { plan: Arc::new(plan) })
}
