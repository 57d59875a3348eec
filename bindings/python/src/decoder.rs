//! Class `Decoder`: events of chunks that an iterable gives.

use std::collections::VecDeque;

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple};
use tambour::InputEnd;
use tambour_bindings::input_end::{failed_end, parse_end};

use crate::chunk::{Chunk, to_text, with_chunk};
use crate::error::ResultExt;
use crate::pipeline::{Reading, ReadingArguments};
use crate::sink::Input;
use crate::state::State;

/// Bytes of a list's chunks that are read together. The chunks are all there, so nothing waits for it.
const BATCH_BYTES: usize = 32 << 10;
/// Largest number of chunks that are read together.
const BATCH_CHUNKS: usize = 8 << 10;

/// Chunks that are still to be read.
enum ChunkSource {
    /// A single chunk.
    Single(Py<PyAny>),
    /// List or tuple, and the index of the next chunk.
    Sequence(Py<PyAny>, usize),
    /// Any other iterable.
    Iterator(Py<PyIterator>),
    /// Nothing more comes.
    Ended,
}

/// Iterator of events. Made by `tambour.decode`.
///
/// `findings` and `outcome` have what is known so far. If the iterable raises an exception, the stream is
/// closed with a `Failure` first, and the exception comes after it.
#[pyclass(module = "tambour")]
pub(crate) struct Decoder {
    reading: Reading,
    source: ChunkSource,
    /// Events that wait to be returned.
    queue: VecDeque<Py<PyAny>>,
    /// Exception of the source, raised behind the last event.
    error: Option<PyErr>,
    end: InputEnd,
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(signature = (chunks, dialect="auto", *, extensions=true, findings=false, finish="stop", incomplete=false, state=None, message="", **options))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        chunks: &Bound<'_, PyAny>,
        dialect: &str,
        extensions: bool,
        findings: bool,
        finish: Option<&str>,
        incomplete: bool,
        state: Option<Py<State>>,
        message: &str,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Decoder> {
        let py = chunks.py();
        let end = parse_end(finish, incomplete).or_raise(py)?;
        let arguments = ReadingArguments {
            dialect,
            sends_extensions: extensions,
            sends_findings: findings,
            state,
            message,
            options,
        };
        let reading = Reading::new(py, arguments)?;
        let source = if with_chunk(chunks, |_| ()).is_ok() {
            ChunkSource::Single(chunks.clone().unbind())
        } else if chunks.is_exact_instance_of::<PyList>() || chunks.is_exact_instance_of::<PyTuple>() {
            ChunkSource::Sequence(chunks.clone().unbind(), 0)
        } else {
            ChunkSource::Iterator(chunks.try_iter()?.unbind())
        };
        Ok(Decoder { reading, source, queue: VecDeque::new(), error: None, end })
    }

    fn __iter__(decoder: PyRef<'_, Self>) -> PyRef<'_, Self> {
        decoder
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if matches!(self.source, ChunkSource::Ended) {
                return Ok(None);
            }
            if let Err(error) = self.read_on(py) {
                self.fail(py, error)?;
            }
        }
    }

    /// Stops reading: the iterable is let go, and no further event comes.
    fn close(&mut self) {
        self.source = ChunkSource::Ended;
        self.queue.clear();
        self.error = None;
    }

    /// Findings so far, in order.
    #[getter]
    fn findings<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.reading.findings(py)
    }

    /// Calls, notices, decisions and updates of the reply so far.
    #[getter]
    fn outcome<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.reading.outcome(py)
    }

    /// Name of the dialect; `auto` until it is detected.
    #[getter]
    fn dialect(&mut self) -> &'static str {
        self.reading.dialect()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.source {
            ChunkSource::Single(object) | ChunkSource::Sequence(object, _) => visit.call(object),
            ChunkSource::Iterator(iterator) => visit.call(iterator),
            ChunkSource::Ended => Ok(()),
        }
    }

    fn __clear__(&mut self) {
        self.source = ChunkSource::Ended;
    }
}

impl Decoder {
    /// Reads the next chunks, or ends the reply.
    fn read_on(&mut self, py: Python<'_>) -> PyResult<()> {
        match &mut self.source {
            ChunkSource::Single(chunk) => {
                let chunk = chunk.clone_ref(py).into_bound(py);
                let events = with_chunk(&chunk, |chunk| self.reading.feed(py, Input::Chunk(chunk)))??;
                self.enqueue(events);
                self.finish(py)
            }
            ChunkSource::Sequence(chunks, at) => {
                let (chunks, start) = (chunks.clone_ref(py).into_bound(py), *at);
                let mut batch = ChunkBatch { bytes: Vec::with_capacity(BATCH_BYTES), error: None };
                let end = batch.fill(&chunks, start)?;
                self.source = ChunkSource::Sequence(chunks.unbind(), end);
                let events = self.reading.feed(py, Input::Chunk(batch.chunk()))?;
                self.enqueue(events);
                match batch.error {
                    Some(error) => Err(error),
                    None if end == start => self.finish(py),
                    None => Ok(()),
                }
            }
            ChunkSource::Iterator(iterator) => {
                let mut iterator = iterator.bind(py).clone();
                match iterator.next().transpose()? {
                    Some(chunk) => {
                        let events = with_chunk(&chunk, |chunk| self.reading.feed(py, Input::Chunk(chunk)))??;
                        self.enqueue(events);
                        Ok(())
                    }
                    None => self.finish(py),
                }
            }
            ChunkSource::Ended => Ok(()),
        }
    }

    fn enqueue(&mut self, events: Vec<Bound<'_, PyAny>>) {
        self.queue.extend(events.into_iter().map(Bound::unbind));
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        self.source = ChunkSource::Ended;
        let end = self.end.clone();
        let (events, error) = self.reading.feed_whole(py, Input::Finish(&end))?;
        self.enqueue(events);
        // The state could not take the updates, which is raised behind the last event.
        self.error = error;
        Ok(())
    }

    /// Closes the stream after an exception of the source, which is raised behind the last event. What is not
    /// an `Exception`, such as `KeyboardInterrupt`, is raised at once.
    fn fail(&mut self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        self.source = ChunkSource::Ended;
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let name = error.get_type(py).name()?.to_string();
        let text = error.value(py).str().and_then(|text| to_text(text.as_any()));
        let message = text.map_or_else(|_| name.clone(), |text| format!("{name}: {text}"));
        let end = failed_end("input_failed".to_owned(), message, false);
        let (events, _) = self.reading.feed_whole(py, Input::Finish(&end))?;
        self.enqueue(events);
        self.error = Some(error);
        Ok(())
    }
}

/// Chunks of a list, joined.
struct ChunkBatch {
    bytes: Vec<u8>,
    /// Exception about the chunk after those in the batch.
    error: Option<PyErr>,
}

impl ChunkBatch {
    /// Adds chunks from the index `start` on; returns the index after the last one.
    fn fill(&mut self, chunks: &Bound<'_, PyAny>, start: usize) -> PyResult<usize> {
        // The length is asked for again each time, since the list may change while it is read.
        match chunks.cast::<PyList>() {
            Ok(list) => self.fill_from(start, |at| (at < list.len()).then(|| list.get_item(at)).transpose()),
            Err(_) => {
                let tuple = chunks.cast::<PyTuple>()?;
                self.fill_from(start, |at| {
                    (at < tuple.len())
                        .then(|| tuple.get_borrowed_item(at).map(|item| item.to_owned()))
                        .transpose()
                })
            }
        }
    }

    fn fill_from<'py>(
        &mut self,
        start: usize,
        item_at: impl Fn(usize) -> PyResult<Option<Bound<'py, PyAny>>>,
    ) -> PyResult<usize> {
        let mut at = start;
        while self.bytes.len() < BATCH_BYTES && at < start + BATCH_CHUNKS {
            let Some(chunk) = item_at(at)? else { break };
            if let Ok(text) = chunk.cast::<PyString>()
                && let Ok(text) = text.to_str()
            {
                self.bytes.extend_from_slice(text.as_bytes());
            } else if let Err(error) =
                with_chunk(&chunk, |chunk| self.bytes.extend_from_slice(chunk.as_bytes()))
            {
                self.error = Some(error);
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    fn chunk(&self) -> Chunk<'_> {
        Chunk::Bytes(&self.bytes)
    }
}
