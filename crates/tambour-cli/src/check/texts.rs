//! The texts inside files: whole files, records, examples.

use std::collections::HashMap;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use tambour::Options;
use tambour::contract::examples;
use tambour::verdict::Contract;

use super::files::{File, has_ending};
use super::{Checked, Part, Run};
use crate::input::{self, STDIN};

/// What is checked, and how.
pub(super) struct Plan<'a> {
    pub(super) contract: Contract,
    pub(super) options: Options,
    pub(super) examples: bool,
    pub(super) field: Option<&'a str>,
    pub(super) contract_field: Option<&'a str>,
}

const MARKDOWN: &[&str] = &["md", "markdown"];
const RECORDS: &[&str] = &["jsonl", "ndjson"];
const TRANSCRIPTS: &[&str] = &["sse", "jsonl", "ndjson", "json", "txt", "log"];
const REPLIES: &[&str] =
    &["txt", "md", "markdown", "xml", "html", "json", "jsonl", "ndjson", "sse", "reply", "in", "out", "log"];

impl Plan<'_> {
    /// Which files of a directory are looked at.
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
        // What comes from standard input has no ending that tells: the arguments do.
        let is_stdin = file.path == Path::new(STDIN);
        match self.field {
            Some(field) if is_stdin || has_ending(&file.path, RECORDS) => {
                self.records(&file.path, &path, field, run)?;
            }
            _ => {
                match input::read(Some(&file.path)) {
                    Ok(bytes) if self.examples => self.document(&path, &bytes, run)?,
                    Ok(bytes) => self.whole(&path, &bytes, run)?,
                    Err(error) => run.unreadable(&path, &error.root_cause().to_string())?,
                }
                run.progress.inc(file.size);
            }
        }
        Ok(())
    }

    fn whole(&self, path: &str, bytes: &[u8], run: &mut Run) -> io::Result<()> {
        let verdict = self.contract.check(bytes, &self.options);
        let text = &String::from_utf8_lossy(bytes);
        run.checked(&Checked { path, part: Part::Whole, text, verdict })
    }

    fn document(&self, path: &str, bytes: &[u8], run: &mut Run) -> io::Result<()> {
        let text = &String::from_utf8_lossy(bytes);
        let shown = examples(text).into_iter().filter(|example| self.contract.shown_by(example));
        for (index, example) in shown.enumerate() {
            let verdict = self.contract.check_example(&example, &self.options);
            let part = Part::Example { number: index + 1, line: example.line };
            run.checked(&Checked { path, part, text, verdict })?;
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
                Ok((contract, reply, id)) => {
                    let verdict = contract.check(reply.as_bytes(), &self.options);
                    run.checked(&Checked { path, part: Part::Record { line, id }, text: &reply, verdict })?;
                }
                Err(message) => faults.add(line, &message, path, run)?,
            }
        }
        faults.finish(path, run)
    }

    /// The contract, the reply and the id of a record.
    fn record(
        &self,
        bytes: &[u8],
        field: &str,
        contracts: &mut HashMap<String, Contract>,
    ) -> Result<(Contract, String, Option<String>), String> {
        let record: Value = serde_json::from_slice(bytes).map_err(|error| format!("not JSON: {error}"))?;
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
            None | Some(Value::Null) => self.contract,
            Some(Value::String(name)) => match contracts.get(name) {
                Some(contract) => *contract,
                None => {
                    let contract = Contract::named(name).map_err(|error| error.to_string())?;
                    *contracts.entry(name.clone()).or_insert(contract)
                }
            },
            Some(_) => return Err("the contract field is not a string".to_owned()),
        };
        let id = record.get("id").and_then(Value::as_str).map(str::to_owned);
        Ok((contract, reply, id))
    }
}

/// Records that cannot be checked: the first ones are shown, the rest counted.
#[derive(Default)]
struct Faults {
    count: usize,
}

impl Faults {
    const SHOWN: usize = 5;

    fn add(&mut self, line: u64, message: &str, path: &str, run: &mut Run) -> io::Result<()> {
        self.count += 1;
        if self.count > Faults::SHOWN {
            return Ok(());
        }
        run.unreadable(path, &format!("record {line}: {message}"))
    }

    fn finish(&self, path: &str, run: &mut Run) -> io::Result<()> {
        match self.count.checked_sub(Faults::SHOWN) {
            None | Some(0) => Ok(()),
            Some(more) => run.unreadable(path, &format!("{more} more records cannot be checked")),
        }
    }
}
