//! Functions on whole texts. Their documentation is in `python/tambour/_functions.py`.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde_json::Value;
use tambour::Profile;
use tambour::texts::Language;
use tambour_bindings::input_end::parse_end;
use tambour_bindings::json::{self, FoundJson};
use tambour_bindings::prompts::{self, PromptSettings, PromptSource};
use tambour_bindings::replies::{self, ContractForm};

use crate::chunk::{Chunk, to_text, with_chunk};
use crate::classes::Classes;
use crate::error::ResultExt;
use crate::pipeline::read_options;
use crate::values::{read_value, write_value};

/// Longest time for the templates of one prompt.
const MAX_RENDERING_TIME: Duration = Duration::from_secs(10);

#[pyfunction]
#[pyo3(signature = (text, contract, options))]
pub(crate) fn check<'py>(
    text: &Bound<'py, PyAny>,
    contract: &str,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let options = read_options(py, options, Profile::Strict)?;
    let check = |chunk: Chunk<'_>| py.detach(|| replies::check(contract, chunk.as_bytes(), &options));
    let verdict = with_chunk(text, check)?.or_raise(py)?;
    Classes::get(py)?.write_record(py, "Verdict", &verdict)
}

#[pyfunction]
#[pyo3(signature = (text, dialect, finish, options))]
pub(crate) fn repair<'py>(
    text: &Bound<'py, PyAny>,
    dialect: &str,
    finish: Option<&str>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let options = read_options(py, options, Profile::Lenient)?;
    let end = parse_end(finish, false).or_raise(py)?;
    let repair = |chunk: Chunk<'_>| py.detach(|| replies::repair(dialect, chunk.as_bytes(), &options, &end));
    let repair = with_chunk(text, repair)?.or_raise(py)?;
    Classes::get(py)?.write_record(py, "Repair", &repair)
}

/// Raises `TambourError` for a word that is no finish reason.
#[pyfunction]
#[pyo3(signature = (reason))]
pub(crate) fn check_finish(py: Python<'_>, reason: Option<&str>) -> PyResult<()> {
    parse_end(reason, false).or_raise(py).map(|_| ())
}

/// Length of a text from which the interpreter's lock is released while its value is searched.
const MIN_DETACHED_TEXT: usize = 16 << 10;

/// Flag that there is a value, the value, its text, and the findings.
type FoundObjects<'py> = (bool, Option<Bound<'py, PyAny>>, Option<String>, Option<Bound<'py, PyList>>);

/// Finds the JSON value of a text: returns whether there is one, the value, its text if numbers need all their
/// digits, and the findings if they are wanted.
#[pyfunction]
#[pyo3(signature = (text, strict, findings))]
pub(crate) fn find_json<'py>(
    text: &Bound<'py, PyAny>,
    strict: bool,
    findings: bool,
) -> PyResult<FoundObjects<'py>> {
    let py = text.py();
    let find_attached = |text: &str| {
        if !strict
            && !findings
            && let Some(value) = json::find_json_value(text)
        {
            return (Some(value), Vec::new());
        }
        json::find_json(text, strict)
    };
    let find = |text: &str| {
        if text.len() < MIN_DETACHED_TEXT { find_attached(text) } else { py.detach(|| find_attached(text)) }
    };
    let (found, reports) = with_chunk(text, |chunk| match chunk {
        Chunk::Text(text) => Ok(find(text)),
        // A `str` with surrogates comes as bytes too.
        Chunk::Bytes(_) => to_text(text).map(|text| find(&text)),
    })??;
    let needs_findings = findings || found.is_none();
    let findings = needs_findings.then(|| Classes::get(py)?.write_findings(py, &reports)).transpose()?;
    Ok(match found {
        Some(FoundJson::Value(value)) => (true, Some(write_value(py, &value)?), None, findings),
        Some(FoundJson::Text(text)) => (true, None, Some(text), findings),
        None => (false, None, None, findings),
    })
}

#[pyfunction]
#[pyo3(signature = (text, mode))]
pub(crate) fn sanitize<'py>(text: &Bound<'py, PyAny>, mode: &str) -> PyResult<(String, Bound<'py, PyList>)> {
    let py = text.py();
    let text = to_text(text)?;
    let (text, findings) = py.detach(|| replies::sanitize_html(&text, mode)).or_raise(py)?;
    Ok((text, Classes::get(py)?.write_findings(py, &findings)?))
}

#[pyfunction]
#[pyo3(signature = (name, format, options))]
pub(crate) fn contract<'py>(
    py: Python<'py>,
    name: &str,
    format: &str,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = read_options(py, options, Profile::default())?;
    match py.detach(|| replies::contract(name, format, &options)).or_raise(py)? {
        ContractForm::Text(text) => Ok(PyString::new(py, &text).into_any()),
        ContractForm::Json(value) => write_value(py, &value),
    }
}

#[pyfunction]
#[pyo3(signature = (data, name))]
pub(crate) fn import_card<'py>(data: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = data.py();
    let import = |chunk: Chunk<'_>| py.detach(|| prompts::import_card(name, chunk.as_bytes()));
    let card = with_chunk(data, import)?.or_raise(py)?;
    Classes::get(py)?.write_record(py, "ImportedCard", &card)
}

#[pyfunction]
#[pyo3(signature = (text))]
pub(crate) fn migrate_macros<'py>(text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let text = to_text(text)?;
    let migrated = py.detach(|| prompts::migrate_macros(&text));
    Classes::get(py)?.write_record(py, "MigratedText", &migrated)
}

#[pyfunction]
#[pyo3(signature = (prompt, context, *, others, max_context, language, strict, timed_effects, seed, count_tokens))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn render_prompt<'py>(
    prompt: &Bound<'py, PyAny>,
    context: &Bound<'py, PyAny>,
    others: &Bound<'py, PyList>,
    max_context: Option<usize>,
    language: &str,
    strict: bool,
    timed_effects: Option<&Bound<'py, PyAny>>,
    seed: u64,
    count_tokens: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = prompt.py();
    let source = read_source(prompt)?;
    let others = others.iter().map(|other| read_source(&other)).collect::<PyResult<Vec<PromptSource>>>()?;
    let context = read_value(context)?;
    // The first exception of the caller's function is raised at the end; from it on, texts count nothing.
    let error: RefCell<Option<PyErr>> = RefCell::new(None);
    let count = |text: &str| -> usize {
        let Some(function) = count_tokens.filter(|_| error.borrow().is_none()) else { return 0 };
        let count = function.call1((text,)).and_then(|count| count.extract::<usize>());
        count.unwrap_or_else(|raised| {
            *error.borrow_mut() = Some(raised);
            0
        })
    };
    let began = Instant::now();
    let settings = PromptSettings {
        context: &context,
        others: &others,
        max_context,
        language: read_language(py, language)?,
        is_strict: strict,
        timed_effects: timed_effects.map(read_value).transpose()?,
        random_seed: seed,
        count_tokens: count_tokens.is_some().then_some(&count),
        should_stop: Box::new(move || began.elapsed() > MAX_RENDERING_TIME),
    };
    let rendered = prompts::render_prompt(&source, settings);
    if let Some(error) = error.into_inner() {
        return Err(error);
    }
    Classes::get(py)?.write_record(py, "RenderedPrompt", &rendered.or_raise(py)?)
}

/// Reads a prompt: text is a Skein in YAML, a dictionary one as a value, bytes are a file.
fn read_source(prompt: &Bound<'_, PyAny>) -> PyResult<PromptSource> {
    if prompt.is_instance_of::<PyDict>() {
        return Ok(PromptSource::Value(read_value(prompt)?));
    }
    with_chunk(prompt, |chunk| match chunk {
        Chunk::Text(text) => PromptSource::Text(text.to_owned()),
        Chunk::Bytes(bytes) => PromptSource::File { bytes: bytes.to_vec(), name: "the file".to_owned() },
    })
}

/// Reads the language of texts.
pub(crate) fn read_language(py: Python<'_>, name: &str) -> PyResult<Language> {
    match name {
        "zh" => Ok(Language::Zh),
        "en" => Ok(Language::En),
        _ => Err(tambour::Error::unknown("language", name, ["zh", "en"])).or_raise(py),
    }
}

/// Reads an optional value; `None` is `null`.
pub(crate) fn read_optional(object: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Value>> {
    object.map(read_value).transpose()
}
