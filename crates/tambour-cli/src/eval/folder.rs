//! Folder of a run: its manifest, all replies, and the report. A run that was killed continues from it.
//!
//! - `run.json`: what the replies depend on; a run continues only if it is the same
//! - `replies.jsonl`: first replies; a prompt is finished when its first reply is here, with its re-asks
//! - `reasks.jsonl`: replies that followed re-asks
//! - `failures.jsonl`: first calls without a complete reply
//! - `report.json`: the report, once all prompts are finished
//! - `lock`: held while a process works on the run

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::file::MAX_REASKS;
use super::lines::{self, LineReader};
use super::plan::{EvalPlan, first_difference};
use super::recorded::ReplyGroup;
use super::reply::ReplyRecord;

/// Folder of a run, held by this process.
pub(super) struct RunFolder {
    path: PathBuf,
    /// Held until the process ends.
    _lock: File,
}

/// Writer of the replies of a run.
pub(super) struct RunWriter {
    replies: RunFile,
    reasks: RunFile,
    failures: RunFile,
}

/// File that is appended to.
struct RunFile {
    file: File,
    path: PathBuf,
    /// Lines that are not written yet.
    lines: Vec<u8>,
}

const MANIFEST: &str = "run.json";
const REPLIES: &str = "replies.jsonl";
const REASKS: &str = "reasks.jsonl";
const FAILURES: &str = "failures.jsonl";
const REPORT: &str = "report.json";
const LOCK: &str = "lock";

/// Maximum size of a manifest or report in bytes.
const MAX_JSON_BYTES: u64 = 256 << 20;

impl RunFolder {
    /// Opens the folder of a run, or creates it. `resumes` says that a run in it is to be continued.
    ///
    /// # Errors
    /// The folder cannot be used, another process works on it, or it holds a run and `resumes` is false, or it
    /// holds a run of another contract, other prompts or other sources.
    pub(super) fn open(path: &Path, manifest: &Value, resumes: bool) -> Result<RunFolder> {
        let name = path.display();
        fs::create_dir_all(path).with_context(|| format!("cannot create {name}"))?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK))
            .with_context(|| format!("cannot write in {name}"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{name}: another process works on this run"),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{name} cannot be locked"));
            }
        }
        let folder = RunFolder { path: path.to_owned(), _lock: lock };
        let manifest_path = path.join(MANIFEST);
        if manifest_path.exists() {
            if !resumes {
                bail!("{name} holds a run; `--resume` continues it, `--run DIR` names another folder");
            }
            let old: Value = read_json(&manifest_path)?;
            if let Some(field) = first_difference(&old, manifest) {
                bail!(
                    "{name} holds a run of another evaluation: `{field}` differs; `--run DIR` names another folder"
                );
            }
        } else if let Some(file) =
            [REPLIES, REASKS, FAILURES, REPORT].into_iter().find(|file| path.join(file).exists())
        {
            bail!("{name} has {file} but no {MANIFEST}: it is not the folder of a run");
        } else {
            let text = serde_json::to_string_pretty(manifest)? + "\n";
            folder.write_file(MANIFEST, text.as_bytes())?;
        }
        Ok(folder)
    }

    /// Returns a flag for each pair of the plan: true if the run has its replies. Prompts that failed are not
    /// finished if `retries_failed`. Removes lines that were cut when the run was killed.
    ///
    /// # Errors
    /// A file cannot be read or written, or a line is not a reply of this run: the message names the line.
    pub(super) fn finished_pairs(&self, plan: &EvalPlan, retries_failed: bool) -> Result<Vec<bool>> {
        for name in [REPLIES, REASKS, FAILURES] {
            let path = self.path.join(name);
            remove_cut_line(&path).with_context(|| format!("cannot mend {}", path.display()))?;
        }
        let mut finished = vec![false; plan.pairs.len()];
        let mut reasks = HashSet::new();
        self.read_records(plan, REASKS, |pair, record, _| {
            reasks.insert((pair, record.attempt));
        })?;
        if !retries_failed {
            self.read_records(plan, FAILURES, |pair, _, _| finished[pair] = true)?;
        }
        self.read_records(plan, REPLIES, |pair, record, _| {
            finished[pair] = (2..=record.reasks + 1).all(|attempt| reasks.contains(&(pair, attempt)));
        })?;
        Ok(finished)
    }

    /// Reads the replies of each finished pair: its index, its first reply and the replies that followed
    /// re-asks. Pairs that failed come first, then the others in the order in which they were finished.
    ///
    /// # Errors
    /// A file cannot be read, or a line is not a reply of this run.
    pub(super) fn read_replies(
        &self,
        plan: &EvalPlan,
        mut on_group: impl FnMut(usize, ReplyGroup) -> Result<()>,
    ) -> Result<()> {
        let mut reask_offsets = HashMap::new();
        self.read_records(plan, REASKS, |pair, record, offset| {
            reask_offsets.insert((pair, record.attempt), offset);
        })?;
        let mut reask_reader = LineReader::open_if_present(&self.path.join(REASKS))?;
        let mut error = None;
        self.read_records(plan, FAILURES, |pair, first, _| {
            let group = ReplyGroup { first, reasks: Vec::new() };
            error = error.take().or_else(|| on_group(pair, group).err());
        })?;
        self.read_records(plan, REPLIES, |pair, first, _| {
            if error.is_some() {
                return;
            }
            let mut reasks = Vec::new();
            for attempt in 2..=first.reasks + 1 {
                let offset = reask_offsets.get(&(pair, attempt));
                match offset
                    .zip(reask_reader.as_mut())
                    .map(|(offset, reader)| read_record_at(reader, *offset))
                {
                    Some(Ok(record)) => reasks.push(record),
                    Some(Err(fault)) => error = Some(fault),
                    None => error = Some(anyhow!("{REASKS} lacks attempt {attempt} of `{}`", first.id)),
                }
            }
            if error.is_none() {
                error = on_group(pair, ReplyGroup { first, reasks }).err();
            }
        })?;
        error.map_or(Ok(()), Err)
    }

    /// Reads the records of a file: the index of the pair, the record, and its offset.
    fn read_records(
        &self,
        plan: &EvalPlan,
        name: &str,
        mut on_record: impl FnMut(usize, ReplyRecord, u64),
    ) -> Result<()> {
        let Some(mut reader) = LineReader::open_if_present(&self.path.join(name))? else { return Ok(()) };
        loop {
            let record: Result<ReplyRecord> = match reader.next()? {
                Some(line) => lines::parse_json(line),
                None => return Ok(()),
            };
            let record = record.with_context(|| reader.place())?;
            let pair = plan
                .pair_of(&record)
                .filter(|_| record.reasks <= MAX_REASKS && record.attempt <= MAX_REASKS + 1)
                .with_context(|| format!("{}: `{}` is not a reply of this run", reader.place(), record.id))?;
            on_record(pair, record, reader.offset);
        }
    }

    /// Opens the files of replies for appending.
    ///
    /// # Errors
    /// A file cannot be opened.
    pub(super) fn writer(&self) -> Result<RunWriter> {
        let open = |name: &str| {
            let path = self.path.join(name);
            let file = OpenOptions::new().create(true).append(true).open(&path);
            let file = file.with_context(|| format!("cannot write {}", path.display()))?;
            Ok::<_, anyhow::Error>(RunFile { file, path, lines: Vec::new() })
        };
        Ok(RunWriter { replies: open(REPLIES)?, reasks: open(REASKS)?, failures: open(FAILURES)? })
    }

    /// Writes the report.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn write_report(&self, json: &str) -> Result<()> {
        self.write_file(REPORT, json.as_bytes())
    }

    /// Writes a file as a whole: it is there with all its content or not at all.
    fn write_file(&self, name: &str, content: &[u8]) -> Result<()> {
        let (path, draft) = (self.path.join(name), self.path.join(format!("{name}.tmp")));
        let write = || {
            let mut file = File::create(&draft)?;
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            sync_folder(&self.path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

impl RunWriter {
    /// Adds the replies to a prompt; they are kept once [`RunWriter::sync`] returns. Returns the number of
    /// bytes that wait.
    ///
    /// # Errors
    /// A reply cannot be written as JSON.
    pub(super) fn push(&mut self, group: &ReplyGroup) -> Result<usize> {
        for record in &group.reasks {
            self.reasks.push(record)?;
        }
        let file = if group.first.error.is_some() { &mut self.failures } else { &mut self.replies };
        file.push(&group.first)?;
        Ok(self.reasks.lines.len() + self.failures.lines.len() + self.replies.lines.len())
    }

    /// Writes what was added, and waits until it is on the disk. A first reply is written after its re-asks,
    /// since it says that its prompt is finished.
    ///
    /// # Errors
    /// A file cannot be written: the disk is full, for example.
    pub(super) fn sync(&mut self) -> Result<()> {
        for file in [&mut self.reasks, &mut self.failures, &mut self.replies] {
            file.sync().with_context(|| format!("cannot write {}", file.path.display()))?;
        }
        Ok(())
    }
}

impl RunFile {
    fn push(&mut self, record: &ReplyRecord) -> Result<()> {
        serde_json::to_writer(&mut self.lines, record)?;
        self.lines.push(b'\n');
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.lines)?;
        self.file.sync_data()?;
        self.lines.clear();
        Ok(())
    }
}

/// Reads a file of JSON.
///
/// # Errors
/// The file cannot be read or is not JSON of this form.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let text = lines::read_text(path, MAX_JSON_BYTES)?;
    lines::parse_json(text.as_bytes()).with_context(|| path.display().to_string())
}

/// Returns the report file of a run that is given as its folder or as the file.
pub(super) fn report_path(run: &Path) -> PathBuf {
    if run.is_dir() { run.join(REPORT) } else { run.to_owned() }
}

fn read_record_at(reader: &mut LineReader, offset: u64) -> Result<ReplyRecord> {
    let line = reader.read_at(offset)?.context("the file has become shorter")?;
    lines::parse_json(line)
}

/// Removes the end of a file after its last line break: a line that was cut when the process was killed.
fn remove_cut_line(path: &Path) -> io::Result<()> {
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let length = file.seek(SeekFrom::End(0))?;
    let (mut end, mut block) = (length, vec![0; 64 << 10]);
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..usize::try_from(end - start).unwrap_or_default()];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(position) = memchr::memrchr(b'\n', part) {
            end = start + position as u64 + 1;
            break;
        }
        end = start;
    }
    if end < length {
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(())
}

/// Makes the names in a folder survive a power cut.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
