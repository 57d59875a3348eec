//! Files of recorded replies: each reply, with the re-asks that follow it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::file::MAX_REASKS;
use super::lines::LineReader;
use super::prompts::hex;
use super::reply::ReplyRecord;

/// Replies to one prompt: the first, and those that followed re-asks.
pub(super) struct ReplyGroup {
    pub(super) first: ReplyRecord,
    pub(super) reasks: Vec<ReplyRecord>,
}

/// Reads a file of recorded replies. `on_group` gets each group with its place, `FILE:LINE`.
///
/// # Errors
/// The file cannot be read, or a line is not a recorded reply: the message names file and line.
pub(super) fn read_groups(
    path: &Path,
    mut on_group: impl FnMut(ReplyGroup, &str) -> Result<()>,
) -> Result<()> {
    let mut reader = LineReader::open(path)?;
    let mut open_group: Option<(ReplyGroup, String)> = None;
    loop {
        let line_number = reader.number + 1;
        let record = match reader.next()? {
            Some(line) => ReplyRecord::parse_recorded(line, line_number),
            None => break,
        };
        let place = reader.place();
        let record = record.with_context(|| place.clone())?;
        if record.attempt == 1 {
            if let Some((group, place)) =
                open_group.replace((ReplyGroup { first: record, reasks: Vec::new() }, place))
            {
                on_group(group, &place)?;
            }
            continue;
        }
        let Some((group, _)) = &mut open_group else {
            bail!("{place}: an attempt after the first, without the first")
        };
        let last_attempt = group.reasks.last().map_or(1, |reask| reask.attempt);
        let continues_group = record.prompt_id == group.first.prompt_id
            && record.protocol == group.first.protocol
            && record.model == group.first.model
            && record.attempt == last_attempt + 1;
        if !continues_group {
            bail!("{place}: attempt {} does not follow the attempt before it", record.attempt);
        }
        if last_attempt > MAX_REASKS {
            bail!("{place}: at most {MAX_REASKS} re-asks of a prompt");
        }
        group.reasks.push(record);
    }
    match open_group {
        Some((group, place)) => on_group(group, &place),
        None => bail!("{}: there are no replies", path.display()),
    }
}

/// Returns the SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// The file cannot be read.
pub(super) fn hash_file(path: &Path) -> Result<String> {
    let name = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 64 << 10]);
    loop {
        let length = file.read(&mut buffer).with_context(|| format!("cannot read {name}"))?;
        if length == 0 {
            return Ok(hex(&hasher.finalize()));
        }
        hasher.update(&buffer[..length]);
    }
}
