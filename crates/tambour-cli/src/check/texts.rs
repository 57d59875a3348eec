//! Texts within files: whole files, records and examples.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use tambour::Options;
use tambour::contract::examples;
use tambour::dialect::{AUTO, detect};
use tambour::span::Span;
use tambour::texts::counted;
use tambour::verdict::Contract;

use super::files::{File, has_ending};
use super::records::Records;
use super::{Checked, Part, Run};
use crate::input::{self, STDIN};
use crate::output;

/// Settings of a check.
pub(super) struct Plan<'a> {
    pub(super) contract: Contract,
    /// True if the contract was given rather than detected.
    pub(super) named: bool,
    pub(super) options: Options,
    pub(super) examples: bool,
    pub(super) field: Option<&'a str>,
    pub(super) contract_field: Option<&'a str>,
}

/// Dialects whose replies are not JSON.
const TEXTS: [&str; 3] = [PLAIN, "thinkingml", "filament"];
const PLAIN: &str = "plain";

const MARKDOWN: &[&str] = &["md", "markdown"];
const RECORDS: &[&str] = &["jsonl", "ndjson"];
const TRANSCRIPTS: &[&str] = &["sse", "jsonl", "ndjson", "json", "txt", "log"];
const REPLIES: &[&str] =
    &["txt", "md", "markdown", "xml", "html", "json", "jsonl", "ndjson", "sse", "reply", "in", "out", "log"];

impl Plan<'_> {
    /// Endings of the files that a directory is searched for.
    pub(super) fn file_types(&self) -> &'static [&'static str] {
        match self.contract {
            _ if self.examples => MARKDOWN,
            _ if self.field.is_some() => RECORDS,
            Contract::Events => TRANSCRIPTS,
            _ => REPLIES,
        }
    }

    /// Checks the texts of one file.
    pub(super) fn check(&self, file: &File, run: &mut Run) -> Result<()> {
        let path = file.path.display().to_string();
        run.progress.set_message(path.clone());
        // Standard input has no ending; the arguments decide.
        let is_stdin = file.path == Path::new(STDIN);
        match self.field {
            Some(field) if is_stdin || has_ending(&file.path, RECORDS) => {
                self.records(&file.path, &path, field, run)?;
            }
            _ => {
                match input::read_raw(Some(&file.path)) {
                    Ok(bytes) => match self.records_unread(&file.path, &bytes) {
                        Some(message) => run.unreadable(&path, &message)?,
                        None => self.text(&path, &bytes, run)?,
                    },
                    Err(error) => run.unreadable(&path, &error.root_cause().to_string())?,
                }
                run.progress.inc(file.size);
            }
        }
        Ok(())
    }

    /// Returns a complaint when a file holds records and no field was named. Dialects written in JSON, or with
    /// calls in JSON, are exempt when named: their replies may look like records.
    fn records_unread(&self, file: &Path, bytes: &[u8]) -> Option<String> {
        let Contract::Dialect(entry) = self.contract else { return None };
        let named = has_ending(file, RECORDS);
        let (is_auto, is_text) = (entry.name == AUTO, TEXTS.contains(&entry.name));
        if self.examples || self.field.is_some() || !(is_auto || is_text && named) {
            return None;
        }
        let records = Records::read(bytes)?;
        let plain = || detect(&String::from_utf8_lossy(bytes)).name == PLAIN;
        ((named || records.count > 1) && (is_text || plain())).then(|| records.unread())
    }

    /// Checks a whole text, or the examples in it.
    pub(super) fn text(&self, path: &str, bytes: &[u8], run: &mut Run) -> io::Result<()> {
        if self.examples { self.document(path, bytes, run) } else { self.whole(path, bytes, run) }
    }

    fn whole(&self, path: &str, bytes: &[u8], run: &mut Run) -> io::Result<()> {
        let verdict = self.contract.check(bytes, &self.options);
        run.checked(Checked {
            path,
            part: Part::Whole,
            text: bytes,
            verdict,
            found: !self.named,
            new: Vec::new(),
        })
    }

    fn document(&self, path: &str, bytes: &[u8], run: &mut Run) -> io::Result<()> {
        let document = Decoded::new(bytes);
        if !document.replaced.is_empty() {
            output::complain(&format!("{path}: bytes that are not UTF-8 were read as U+FFFD"));
        }
        let shown = examples(&document.text).into_iter().filter(|example| self.contract.shown_by(example));
        for (index, example) in shown.enumerate() {
            let mut verdict = self.contract.check_example(&example, &self.options);
            for finding in &mut verdict.findings {
                let Span { start, end } = finding.span;
                finding.span = Span { start: document.received(start), end: document.received(end) };
            }
            let part = Part::Example { number: index + 1, line: example.line };
            run.checked(Checked { path, part, text: bytes, verdict, found: !self.named, new: Vec::new() })?;
        }
        Ok(())
    }

    fn records(&self, file: &Path, path: &str, field: &str, run: &mut Run) -> io::Result<()> {
        let opened: io::Result<Box<dyn BufRead>> = if file == Path::new(STDIN) {
            Ok(Box::new(io::stdin().lock()))
        } else {
            fs::File::open(file).map(|file| Box::new(BufReader::new(file)) as Box<dyn BufRead>)
        };
        let mut reader = match opened {
            Ok(reader) => reader,
            Err(error) => return run.unreadable(path, &error.to_string()),
        };
        let mut contracts = HashMap::new();
        let mut faults = Faults::default();
        let (mut bytes, mut line) = (Vec::new(), 0);
        loop {
            bytes.clear();
            line += 1;
            match reader.read_until(b'\n', &mut bytes) {
                Ok(0) => break,
                Ok(length) => run.progress.inc(length as u64),
                Err(error) => {
                    run.unreadable(path, &error.to_string())?;
                    break;
                }
            }
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            match self.record(&bytes, field, &mut contracts) {
                Ok(Record { contract, reply, id }) => {
                    let found = contract.is_none() && !self.named;
                    let text = reply.as_bytes();
                    let verdict = contract.unwrap_or(self.contract).check(text, &self.options);
                    let part = Part::Record { line, id };
                    run.checked(Checked { path, part, text, verdict, found, new: Vec::new() })?;
                }
                Err(message) => faults.add(line, &message, path, run)?,
            }
        }
        faults.finish(path, run);
        Ok(())
    }

    fn record(
        &self,
        bytes: &[u8],
        field: &str,
        contracts: &mut HashMap<String, Contract>,
    ) -> Result<Record, String> {
        let record: Value = serde_json::from_slice(bytes).map_err(|fault| {
            let (words, place) = input::json_fault(bytes, &fault);
            format!("not JSON: {words} (column {}): {}", place.column, place.excerpt)
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
            Some(Value::String(name)) => match contracts.get(name) {
                Some(contract) => Some(*contract),
                None => {
                    let contract = Contract::named(name).map_err(|error| error.to_string())?;
                    Some(*contracts.entry(name.clone()).or_insert(contract))
                }
            },
            Some(_) => return Err("the contract field is not a string".to_owned()),
        };
        let id = record.get("id").and_then(Value::as_str).map(str::to_owned);
        Ok(Record { contract, reply, id })
    }
}

/// Record with its own contract, if any, its reply and its id.
struct Record {
    contract: Option<Contract>,
    reply: String,
    id: Option<String>,
}

/// Document as text; bytes that are not UTF-8 are U+FFFD.
struct Decoded {
    text: String,
    /// Offset of each U+FFFD, and by how many bytes the text up to its end is longer than the document.
    replaced: Vec<(usize, isize)>,
}

impl Decoded {
    fn new(bytes: &[u8]) -> Decoded {
        let mut decoded = Decoded { text: String::with_capacity(bytes.len()), replaced: Vec::new() };
        let mut longer = 0;
        for chunk in bytes.utf8_chunks() {
            decoded.text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                longer += char::REPLACEMENT_CHARACTER.len_utf8() as isize - chunk.invalid().len() as isize;
                decoded.replaced.push((decoded.text.len(), longer));
                decoded.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        decoded
    }

    /// Maps an offset in the text to one in the document.
    fn received(&self, at: usize) -> usize {
        let before = self.replaced.partition_point(|(start, _)| *start < at);
        let longer = before.checked_sub(1).map_or(0, |last| self.replaced[last].1);
        at.saturating_add_signed(-longer)
    }
}

/// Unreadable records: reports list all of them, messages only the first few and a count.
#[derive(Default)]
struct Faults {
    count: usize,
}

impl Faults {
    const SHOWN: usize = 5;

    fn add(&mut self, line: u64, message: &str, path: &str, run: &mut Run) -> io::Result<()> {
        self.count += 1;
        if self.count <= Faults::SHOWN {
            run.tell(path, &format!("record {line}: {message}"));
        }
        run.unreadable_record(path, line, message)
    }

    fn finish(&self, path: &str, run: &Run) {
        if let Some(more @ 1..) = self.count.checked_sub(Faults::SHOWN) {
            run.tell(path, &format!("{} cannot be checked", counted(more, "more record")));
        }
    }
}
