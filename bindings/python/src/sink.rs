//! Events of a push, as Python objects or waiting to become them.

use pyo3::prelude::*;
use tambour::event::{EventCollector, Sink};
use tambour::{Event, Finding, InputEnd};

use crate::chunk::{Chunk, MIN_DETACHED_BYTES};
use crate::classes::Classes;

/// Creates objects of events as they arrive. After an error further events are dropped.
struct ObjectSink<'a, 'py> {
    py: Python<'py>,
    classes: &'a Classes,
    objects: Vec<Bound<'py, PyAny>>,
    findings: &'a mut Vec<Finding>,
    error: Option<PyErr>,
}

impl Sink for ObjectSink<'_, '_> {
    fn event(&mut self, event: Event<'_>) {
        if self.error.is_some() {
            return;
        }
        match self.classes.write_event(self.py, &event) {
            Ok(object) => self.objects.push(object),
            Err(error) => self.error = Some(error),
        }
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

/// A pipeline with the findings so far.
pub(crate) struct PipelineReader {
    pub(crate) pipeline: tambour::Pipeline,
    pub(crate) findings: Vec<Finding>,
}

/// Input of a pipeline.
#[derive(Clone, Copy)]
pub(crate) enum Input<'a> {
    /// The next chunk.
    Chunk(Chunk<'a>),
    /// Reasoning that the service sent apart from the reply.
    Reasoning(&'a str),
    /// A complete call that the service sent apart from the reply.
    Call {
        /// Name of the tool.
        name: &'a str,
        /// Arguments as JSON text.
        arguments: &'a str,
    },
    /// The end of the reply.
    Finish(&'a InputEnd),
    /// The end of a stream that waits for results of calls.
    Abandon(&'a InputEnd),
}

impl PipelineReader {
    /// Passes an input to the pipeline; returns the events.
    pub(crate) fn feed<'py>(
        &mut self,
        py: Python<'py>,
        input: Input<'_>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let classes = Classes::get(py)?;
        let is_large = match input {
            Input::Chunk(chunk) => chunk.as_bytes().len() >= MIN_DETACHED_BYTES,
            Input::Reasoning(text) => text.len() >= MIN_DETACHED_BYTES,
            // Text that is held back until the end may be long.
            Input::Call { .. } | Input::Finish(_) | Input::Abandon(_) => true,
        };
        let PipelineReader { pipeline, findings } = self;
        if is_large {
            let collector = py.detach(|| {
                let mut collector = EventCollector::default();
                run(pipeline, input, &mut collector);
                collector
            });
            findings.extend(collector.findings);
            return collector.events.iter().map(|event| classes.write_event(py, event)).collect();
        }
        let mut sink = ObjectSink { py, classes, objects: Vec::new(), findings, error: None };
        run(pipeline, input, &mut sink);
        match sink.error {
            Some(error) => Err(error),
            None => Ok(sink.objects),
        }
    }
}

fn run(pipeline: &mut tambour::Pipeline, input: Input<'_>, sink: &mut dyn Sink) {
    match input {
        Input::Chunk(Chunk::Text(text)) => pipeline.push_str(text, sink),
        Input::Chunk(Chunk::Bytes(bytes)) => pipeline.push(bytes, sink),
        Input::Reasoning(text) => pipeline.push_reasoning(text, sink),
        Input::Call { name, arguments } => pipeline.push_call(name, arguments, sink),
        Input::Finish(end) => pipeline.finish(end, sink),
        Input::Abandon(end) => pipeline.abandon(end, sink),
    }
}
