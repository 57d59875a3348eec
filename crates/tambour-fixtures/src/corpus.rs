//! Corpora of replies: written by hand (valid, or with one injected fault), and recorded from real models.

use std::path::Path;

use serde_json::Value;

/// Reply of a corpus.
#[derive(Clone, Debug)]
pub struct CorpusReply {
    /// Stable id.
    pub id: String,
    /// Dialect that the prompt asked for.
    pub dialect: String,
    /// Reply in chunks, as received.
    pub chunks: Vec<String>,
    /// Finish reason: `stop` or `length`.
    pub finish: String,
    /// Hand-written replies: events of a valid reply, or the value in it.
    pub expected: Option<Value>,
    /// Settings of the reading as JSON, such as the round of a dialogue; null if there are none.
    pub input: Value,
    /// Hand-written replies: name of the injected fault.
    pub fault: Option<String>,
    /// Hand-written replies: id of the valid reply that a faulty one was made from.
    pub base: Option<String>,
    /// Hand-written replies: names of questions about the reply that the contract leaves open.
    pub ambiguous: Vec<String>,
}

impl CorpusReply {
    /// Joins the chunks.
    #[must_use]
    pub fn joined_text(&self) -> String {
        self.chunks.concat()
    }

    /// Offsets at which the chunks end, without the last.
    #[must_use]
    pub fn cut_offsets(&self) -> Vec<usize> {
        let mut offset = 0;
        let chunk_ends = self.chunks.iter().map(|chunk| {
            offset += chunk.len();
            offset
        });
        let mut cuts: Vec<usize> = chunk_ends.collect();
        cuts.pop();
        cuts
    }
}

/// Reads the replies written by hand for `dialect`; empty without a file.
///
/// # Errors
/// A line of the file is malformed.
pub fn load_authored(dialect: &str) -> Result<Vec<CorpusReply>, String> {
    load_replies(&crate::fixtures_folder().join("authored").join(format!("{dialect}.jsonl")))
}

/// Reads the recorded replies to prompts that asked for `dialect`; empty without a file.
///
/// # Errors
/// A line of the file is malformed.
pub fn load_recorded(dialect: &str) -> Result<Vec<CorpusReply>, String> {
    load_replies(&crate::fixtures_folder().join("recorded").join(format!("{dialect}.jsonl")))
}

fn load_replies(path: &Path) -> Result<Vec<CorpusReply>, String> {
    let Ok(text) = std::fs::read_to_string(path) else { return Ok(Vec::new()) };
    let lines = text.lines().enumerate();
    lines
        .map(|(index, line)| {
            parse_reply(line).map_err(|error| format!("{}:{}: {error}", path.display(), index + 1))
        })
        .collect()
}

fn parse_reply(line: &str) -> Result<CorpusReply, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let string = |key: &str| value[key].as_str().map(str::to_owned);
    let strings = |key: &str| -> Vec<String> {
        let list = value[key].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Ok(CorpusReply {
        id: string("id").ok_or("no `id`")?,
        dialect: string("protocol").ok_or("no `protocol`")?,
        chunks: strings("chunks"),
        finish: string("finish_reason").ok_or("no `finish_reason`")?,
        expected: value.get("expected").filter(|value| !value.is_null()).cloned(),
        input: value["input"].clone(),
        fault: string("fault"),
        base: string("base_id"),
        ambiguous: strings("ambiguous"),
    })
}
