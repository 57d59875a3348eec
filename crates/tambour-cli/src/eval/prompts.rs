//! Prompts of an evaluation: records of JSON Lines, or lines of text.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tambour_server::upstream::Message;

use super::lines::{self, LineReader};

/// Prompt: what a model is asked.
#[derive(Clone, Debug)]
pub(super) struct Prompt {
    /// Id, unique among the prompts.
    pub(super) id: String,
    /// System prompt in place of that of the file of the evaluation.
    pub(super) system_prompt: Option<String>,
    /// Messages that follow the system prompt; at least one.
    pub(super) messages: Vec<Message>,
}

/// Prompts in their order, with a hash of their content.
#[derive(Default)]
pub(super) struct PromptSet {
    pub(super) prompts: Vec<Prompt>,
    /// SHA-256 of all prompts, in hexadecimal.
    pub(super) hash: String,
}

/// Record of a prompt in a JSONL file. Other fields are for the author.
#[derive(Deserialize)]
struct PromptRecord {
    id: Option<Value>,
    text: Option<String>,
    messages: Option<Vec<Message>>,
    system_prompt: Option<String>,
}

/// Maximum number of prompts.
const MAX_PROMPTS: usize = 100_000;
/// Maximum number of files in a folder of prompts.
const MAX_FILES: usize = 10_000;
/// Maximum total length of all prompts in bytes.
const MAX_PROMPT_BYTES: usize = 256 << 20;
/// Maximum length of an id in bytes.
pub(super) const MAX_ID_BYTES: usize = 500;

impl PromptSet {
    /// Reads the prompts of a file, or of all `.jsonl` and `.txt` files of a folder in the order of their
    /// names.
    ///
    /// # Errors
    /// A file cannot be read, or a record is not a prompt: the message names file and line.
    pub(super) fn read(path: &Path) -> Result<PromptSet> {
        let mut set = PromptSet::default();
        let (mut hasher, mut ids, mut bytes) = (Sha256::new(), HashSet::new(), 0);
        let is_folder = path.is_dir();
        for file in prompt_files(path, is_folder)? {
            let is_text = has_extension(&file, "txt");
            let mut reader = LineReader::open(&file)?;
            while let Some(line) = reader.next()? {
                let (line, number) = (line.to_vec(), reader.number);
                let place = || reader.place();
                let file_stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
                // Lines are numbered within their file.
                let default_id = match file_stem {
                    Some(stem) if is_folder => format!("{stem}:{number}"),
                    _ => number.to_string(),
                };
                let prompt = if is_text {
                    read_text_prompt(&line, default_id)
                } else {
                    read_record(&line, default_id)
                };
                let prompt = prompt.with_context(place)?;
                if !ids.insert(prompt.id.clone()) {
                    bail!("{}: the id `{}` occurs twice", place(), prompt.id);
                }
                bytes += line.len();
                if ids.len() > MAX_PROMPTS || bytes > MAX_PROMPT_BYTES {
                    bail!("{}: at most {MAX_PROMPTS} prompts of {MAX_PROMPT_BYTES} bytes together", place());
                }
                hasher.update(serde_json::to_vec(&(&prompt.id, &prompt.system_prompt, &prompt.messages))?);
                hasher.update(b"\n");
                set.prompts.push(prompt);
            }
        }
        if set.prompts.is_empty() {
            bail!("{}: there are no prompts", path.display());
        }
        set.hash = hex(&hasher.finalize());
        Ok(set)
    }
}

/// Lists the files of prompts at a path.
fn prompt_files(path: &Path, is_folder: bool) -> Result<Vec<PathBuf>> {
    if !is_folder {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let entries = std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    for entry in entries {
        let file = entry.with_context(|| format!("cannot read {}", path.display()))?.path();
        if file.is_file() && (has_extension(&file, "txt") || has_extension(&file, "jsonl")) {
            files.push(file);
        }
        if files.len() > MAX_FILES {
            bail!("{}: at most {MAX_FILES} files of prompts", path.display());
        }
    }
    files.sort();
    Ok(files)
}

fn has_extension(file: &Path, extension: &str) -> bool {
    file.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

/// Reads a line of text, such as an input of a script.
fn read_text_prompt(line: &[u8], default_id: String) -> Result<Prompt> {
    let text = std::str::from_utf8(line).context("not UTF-8 text")?.trim();
    Ok(Prompt { id: default_id, system_prompt: None, messages: vec![Message::new("user", text)] })
}

/// Reads a record with `text` or `messages`.
fn read_record(line: &[u8], default_id: String) -> Result<Prompt> {
    let record: PromptRecord = lines::parse_json(line)?;
    let id = match record.id {
        None | Some(Value::Null) => default_id,
        Some(Value::String(id)) if !id.is_empty() && id.len() <= MAX_ID_BYTES => id,
        Some(Value::Number(id)) => id.to_string(),
        Some(_) => bail!("`id` must be a number or a text of 1 to {MAX_ID_BYTES} bytes"),
    };
    let messages = match (record.text, record.messages) {
        (Some(text), None) if !text.trim().is_empty() => vec![Message::new("user", text)],
        (None, Some(messages)) if !messages.is_empty() => messages,
        (Some(_), Some(_)) => bail!("give `text` or `messages`, not both"),
        _ => bail!("a prompt needs `text`, or `messages` as a list of `role` and `content`"),
    };
    if messages.iter().all(|message| message.role == "system") {
        bail!("the `messages` of a prompt need one that is not of role `system`");
    }
    if let Some((fault, _)) = messages.iter().find_map(Message::find_fault) {
        bail!("{fault}");
    }
    Ok(Prompt { id, system_prompt: record.system_prompt, messages })
}

/// Writes bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
