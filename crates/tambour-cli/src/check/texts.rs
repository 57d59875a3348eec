//! Texts within files: whole files, records and examples.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Result;
use indicatif::ProgressBar;
use serde_json::Value;
use tambour::Options;
use tambour::contract::find_examples;
use tambour::dialect::{AUTO, detect};
use tambour::span::Span;
use tambour::texts::format_count;
use tambour::verdict::{Contract, Verdict};

use super::compressed::{decompress, is_compressed};
use super::files::{InputFile, has_extension};
use super::jobs;
use super::lines::{Chunk, ChunkReader};
use super::records::RecordSummary;
use super::{CheckRun, CheckedText, TextPart};
use crate::input::{self, STDIN};
use crate::output;

/// Settings of a check, the same for all files.
pub(super) struct CheckPlan<'a> {
    /// Contract of texts, except records that name their own; `auto` detects the dialect of each text.
    pub(super) contract: Contract,
    /// True if the user named the contract, even as `auto`.
    pub(super) is_named: bool,
    pub(super) options: Options,
    /// True to check the fenced examples in Markdown files instead of whole files.
    pub(super) examples: bool,
    /// Field of records that holds the reply; `None` if files hold no records.
    pub(super) field: Option<&'a str>,
    /// Field in which a record may name its own contract; `None` if records have no such field.
    pub(super) contract_field: Option<&'a str>,
    /// Number of records that are checked at the same time.
    pub(super) jobs: usize,
}

/// Dialects whose replies are not JSON.
const NON_JSON_DIALECTS: [&str; 3] = [PLAIN, "thinkingml", "filament"];
const PLAIN: &str = "plain";

const MARKDOWN_EXTENSIONS: &[&str] = &["md", "markdown"];
const RECORD_EXTENSIONS: &[&str] = &["jsonl", "ndjson", "jsonl.gz", "ndjson.gz", "jsonl.zst", "ndjson.zst"];
const TRANSCRIPT_EXTENSIONS: &[&str] = &["sse", "jsonl", "ndjson", "json", "txt", "log"];
const REPLY_EXTENSIONS: &[&str] =
    &["txt", "md", "markdown", "xml", "html", "json", "jsonl", "ndjson", "sse", "reply", "in", "out", "log"];

impl CheckPlan<'_> {
    /// Extensions of the files that a directory is searched for, in lower case and without a dot.
    pub(super) fn file_extensions(&self) -> &'static [&'static str] {
        match self.contract {
            _ if self.examples => MARKDOWN_EXTENSIONS,
            _ if self.field.is_some() => RECORD_EXTENSIONS,
            Contract::Events => TRANSCRIPT_EXTENSIONS,
            _ => REPLY_EXTENSIONS,
        }
    }

    /// Checks the texts of one file.
    pub(super) fn check_file(&self, file: &InputFile, run: &mut CheckRun) -> Result<()> {
        let path = file.path.display().to_string();
        run.progress.set_message(path.clone());
        // Standard input has no extension; `--field` alone says that it holds records.
        let is_stdin = file.path == Path::new(STDIN);
        match self.field {
            Some(field) if is_stdin || has_extension(&file.path, RECORD_EXTENSIONS) => {
                self.check_records(&file.path, &path, field, run)?;
            }
            _ => {
                match input::read_raw(Some(&file.path)) {
                    Ok(bytes) => match self.unread_records_message(&file.path, &bytes) {
                        Some(message) => run.report_unreadable_file(&path, &message)?,
                        None => self.check_text(&path, &bytes, run)?,
                    },
                    Err(error) => run.report_unreadable_file(&path, &error.root_cause().to_string())?,
                }
                run.progress.inc(file.size);
            }
        }
        Ok(())
    }

    /// Returns a message when a file is compressed, or holds records and no field was named. Dialects written in JSON, or with
    /// calls in JSON, are exempt when named: their replies may look like records.
    fn unread_records_message(&self, file: &Path, bytes: &[u8]) -> Option<String> {
        if is_compressed(bytes) {
            return Some("compressed; `--field NAME` reads the records of such a file".to_owned());
        }
        let Contract::Dialect(entry) = self.contract else { return None };
        let has_record_extension = has_extension(file, RECORD_EXTENSIONS);
        let (is_auto, is_non_json) = (entry.name == AUTO, NON_JSON_DIALECTS.contains(&entry.name));
        let may_hold_records = is_auto || is_non_json && has_record_extension;
        if self.examples || self.field.is_some() || !may_hold_records {
            return None;
        }
        let records = RecordSummary::read(bytes)?;
        // A single JSON object may also be a reply in a JSON dialect, so the detected dialect decides.
        let is_plain = || detect(&String::from_utf8_lossy(bytes)).name == PLAIN;
        ((has_record_extension || records.count > 1) && (is_non_json || is_plain()))
            .then(|| records.missing_field_message())
    }

    /// Checks a text as one reply or transcript, or the examples in it.
    pub(super) fn check_text(&self, path: &str, bytes: &[u8], run: &mut CheckRun) -> io::Result<()> {
        if self.examples { self.check_examples(path, bytes, run) } else { self.check_reply(path, bytes, run) }
    }

    fn check_reply(&self, path: &str, bytes: &[u8], run: &mut CheckRun) -> io::Result<()> {
        let verdict = self.contract.check(bytes, &self.options);
        run.report_text(CheckedText {
            path,
            part: TextPart::Document,
            text: bytes,
            verdict,
            is_detected: !self.is_named,
            new_flags: Vec::new(),
        })
    }

    fn check_examples(&self, path: &str, bytes: &[u8], run: &mut CheckRun) -> io::Result<()> {
        let document = DecodedDocument::new(bytes);
        if !document.replacements.is_empty() {
            output::print_error(&format!("{path}: bytes that are not UTF-8 were read as U+FFFD"));
        }
        let examples = find_examples(&document.text)
            .into_iter()
            .filter(|example| self.contract.matches_example(example));
        for (index, example) in examples.enumerate() {
            let mut verdict = self.contract.check_example(&example, &self.options);
            for finding in &mut verdict.findings {
                let Span { start, end } = finding.span;
                finding.span =
                    Span { start: document.original_offset(start), end: document.original_offset(end) };
            }
            let part = TextPart::Example { number: index + 1, line: example.line };
            run.report_text(CheckedText {
                path,
                part,
                text: bytes,
                verdict,
                is_detected: !self.is_named,
                new_flags: Vec::new(),
            })?;
        }
        Ok(())
    }

    /// Checks the records of `file`, several at a time; `path` is its name in the report.
    fn check_records(&self, file: &Path, path: &str, field: &str, run: &mut CheckRun) -> io::Result<()> {
        let chunks = match open_records(file, &run.progress) {
            Ok(chunks) => chunks,
            Err(error) => return run.report_unreadable_file(path, &error.to_string()),
        };
        let mut faults = RecordFaults::default();
        let check = |chunk: Chunk| -> CheckedChunk {
            let records = chunk
                .lines()
                .map(|(line, bytes)| (line, bytes.and_then(|bytes| self.check_record(bytes, field))));
            CheckedChunk { records: records.collect(), error: chunk.error }
        };
        jobs::run_in_order(chunks, self.jobs, check, |CheckedChunk { records, error }| {
            for (line, record) in records {
                match record {
                    Ok(CheckedRecord { verdict, reply, id, is_detected }) => {
                        run.report_text(CheckedText {
                            path,
                            part: TextPart::Record { line, id },
                            text: reply.as_bytes(),
                            verdict,
                            is_detected,
                            new_flags: Vec::new(),
                        })?
                    }
                    Err(message) => faults.add(line, &message, path, run)?,
                }
            }
            match error {
                Some(error) => run.report_unreadable_file(path, &error),
                None => Ok(()),
            }
        })?;
        faults.finish(path, run);
        Ok(())
    }

    /// Checks a record from its line. The error is a message for people.
    fn check_record(&self, bytes: &[u8], field: &str) -> Result<CheckedRecord, String> {
        let record: Value = serde_json::from_slice(bytes).map_err(|fault| {
            let (message, location) = input::describe_json_fault(bytes, &fault);
            format!("not JSON: {message} (column {}): {}", location.column, location.excerpt)
        })?;
        let reply = match record.get(field) {
            Some(Value::String(reply)) => reply.clone(),
            Some(Value::Array(parts)) => {
                let parts: Option<Vec<&str>> = parts.iter().map(Value::as_str).collect();
                parts.ok_or_else(|| format!("field `{field}` holds something that is not a string"))?.concat()
            }
            Some(_) => return Err(format!("field `{field}` is neither a string nor an array of strings")),
            None => return Err(format!("no field `{field}`")),
        };
        let contract = match self.contract_field.and_then(|name| record.get(name)) {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(Contract::from_name(name).map_err(|error| error.to_string())?),
            Some(_) => return Err("the contract field is not a string".to_owned()),
        };
        let id = record.get("id").and_then(Value::as_str).map(str::to_owned);
        let is_detected = contract.is_none() && !self.is_named;
        let verdict = contract.unwrap_or(self.contract).check(reply.as_bytes(), &self.options);
        Ok(CheckedRecord { verdict, reply, id, is_detected })
    }
}

/// Opens a file of records, which may be compressed.
fn open_records(file: &Path, progress: &ProgressBar) -> io::Result<ChunkReader> {
    let source: Box<dyn Read + Send> =
        if file == Path::new(STDIN) { Box::new(io::stdin()) } else { Box::new(fs::File::open(file)?) };
    Ok(ChunkReader::new(decompress(progress.wrap_read(source))?))
}

/// Checked records of a chunk by their lines; what cannot be checked is a message for people.
struct CheckedChunk {
    records: Vec<(u64, Result<CheckedRecord, String>)>,
    /// Error after the last record, which ends the file.
    error: Option<String>,
}

/// Checked record.
struct CheckedRecord {
    verdict: Verdict,
    reply: String,
    id: Option<String>,
    /// True if the contract was detected because none was given.
    is_detected: bool,
}

/// Document as text; bytes that are not UTF-8 become U+FFFD.
struct DecodedDocument {
    text: String,
    /// Offset in `text` of each U+FFFD that replaces bytes, and the growth: the number of bytes by which
    /// `text` is longer than the document, counted up to the end of this U+FFFD.
    replacements: Vec<(usize, isize)>,
}

impl DecodedDocument {
    fn new(bytes: &[u8]) -> DecodedDocument {
        let mut document =
            DecodedDocument { text: String::with_capacity(bytes.len()), replacements: Vec::new() };
        let mut growth = 0;
        for chunk in bytes.utf8_chunks() {
            document.text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                growth += char::REPLACEMENT_CHARACTER.len_utf8() as isize - chunk.invalid().len() as isize;
                document.replacements.push((document.text.len(), growth));
                document.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        document
    }

    /// Maps an offset in `text` to one in the document.
    fn original_offset(&self, offset: usize) -> usize {
        let count_before = self.replacements.partition_point(|(start, _)| *start < offset);
        let growth = count_before.checked_sub(1).map_or(0, |last| self.replacements[last].1);
        offset.saturating_add_signed(-growth)
    }
}

/// Unreadable records of one file: reports list all of them, messages only the first few and a count.
#[derive(Default)]
struct RecordFaults {
    count: usize,
}

impl RecordFaults {
    /// Maximum number of messages for one file.
    const MAX_SHOWN_FAULTS: usize = 5;

    /// Reports a record that cannot be read, and prints its message if it is one of the first.
    fn add(&mut self, line: u64, message: &str, path: &str, run: &mut CheckRun) -> io::Result<()> {
        self.count += 1;
        if self.count <= RecordFaults::MAX_SHOWN_FAULTS {
            run.print_message(path, &format!("record {line}: {message}"));
        }
        run.report_unreadable_record(path, line, message)
    }

    /// Prints the number of records whose messages were left out, if there are any.
    fn finish(&self, path: &str, run: &CheckRun) {
        if let Some(unshown_count @ 1..) = self.count.checked_sub(RecordFaults::MAX_SHOWN_FAULTS) {
            let records = format_count(unshown_count, "more record");
            run.print_message(path, &format!("{records} cannot be checked"));
        }
    }
}
