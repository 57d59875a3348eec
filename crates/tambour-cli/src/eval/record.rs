//! `--record`: the replies of a run as recordings, with the files that use them.
//!
//! - `SOURCE.jsonl`: recorded replies of a source, for a replay upstream and for another evaluation
//! - `eval.toml`: evaluation of these files, with the same contract
//! - `tambour.toml`: an upstream for each of them
//! - `fixtures.jsonl`: each first reply with the codes of its findings

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use tambour::Severity;

use super::folder::RunFolder;
use super::plan::{EvalPlan, SourceKind};
use super::reply::ReplyRecord;
use crate::output;

/// Writes the files of a run to a folder.
///
/// # Errors
/// The run cannot be read, or a file cannot be written or is there already.
pub(super) fn write(run: &RunFolder, plan: &EvalPlan, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    // Nothing is replaced: neither the run itself nor files of the user.
    if entries.next().is_some() {
        bail!("{} is not empty; `--record DIR` takes a new folder", folder.display());
    }
    let file_names = file_names(plan);
    let mut files = Vec::new();
    for name in &file_names {
        files.push(create(&folder.join(name))?);
    }
    let mut fixtures = create(&folder.join("fixtures.jsonl"))?;
    // A failure counts if no reply has replaced it, and then the first.
    let mut has_reply = vec![false; plan.pairs.len()];
    run.read_replies(plan, |pair, group| {
        has_reply[pair] |= group.first.error.is_none();
        Ok(())
    })?;
    let mut source_has_reply = vec![false; plan.sources.len()];
    let replied = plan.pairs.iter().zip(&has_reply).filter(|(_, has_reply)| **has_reply);
    replied.for_each(|(pair, _)| source_has_reply[pair.source] = true);
    let mut is_written = vec![false; plan.pairs.len()];
    run.read_replies(plan, |pair, group| {
        let is_replaced = group.first.error.is_some() && has_reply[pair];
        if is_replaced || std::mem::replace(&mut is_written[pair], true) {
            return Ok(());
        }
        let file = &mut files[plan.pairs[pair].source];
        for record in std::iter::once(&group.first).chain(&group.reasks) {
            write_line(file, &serde_json::to_value(record)?)?;
        }
        // A failed call is no reply.
        match group.first.error {
            Some(_) => Ok(()),
            None => write_line(&mut fixtures, &fixture(plan, pair, &group.first)),
        }
    })?;
    for mut file in files.into_iter().chain([fixtures]) {
        file.flush().with_context(|| format!("cannot write in {}", folder.display()))?;
    }
    write_text(&folder.join("eval.toml"), &evaluation(plan, &file_names, folder)?)?;
    write_text(&folder.join("tambour.toml"), &configuration(plan, &file_names, &source_has_reply)?)
}

/// Returns a file name for each source: its name, without characters that file systems refuse.
fn file_names(plan: &EvalPlan) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for source in &plan.sources {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let stem: String = source.name.chars().map(|c| if is_plain(c) { c } else { '-' }).take(60).collect();
        let stem = stem.trim_start_matches('.');
        let stem = if stem.is_empty() || stem == "fixtures" { "source" } else { stem };
        let mut name = format!("{stem}.jsonl");
        let mut number = 2;
        while names.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
            name = format!("{stem}-{number}.jsonl");
            number += 1;
        }
        names.push(name);
    }
    names
}

/// Describes a first reply as a fixture: what it is read as, and the codes of its findings.
fn fixture(plan: &EvalPlan, pair: usize, record: &ReplyRecord) -> Value {
    let contract = &plan.contracts[plan.pairs[pair].contract];
    let findings = contract.judge(record).verdict.findings;
    let mut codes: Vec<&str> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.severity >= Severity::Warning) {
        if !codes.contains(&&*finding.code) {
            codes.push(&finding.code);
        }
    }
    let mut fixture = json!({"id": record.id, "dialect": record.protocol, "input": record.text()});
    let profile = if plan.file.contract.profile.as_deref() == Some("lenient") { "lenient" } else { "strict" };
    fixture[profile] = json!(codes);
    let options = reading_options(plan);
    if !options.is_empty() {
        fixture["options"] = json!(options);
    }
    if !record.reasoning.is_empty() {
        fixture["reasoning"] = json!(record.reasoning);
    }
    match record.finish_reason {
        Some(tambour::event::FinishReason::Stop) => {}
        Some(reason) => fixture["finish"] = json!(reason),
        None => fixture["finish"] = json!("unknown"),
    }
    fixture
}

/// Returns the options under which the replies were read. Those of several aliases are joined; the first of
/// different values wins. The example of the format instructions counts as one if models saw it.
fn reading_options(plan: &EvalPlan) -> BTreeMap<String, Value> {
    let mut options = plan.file.contract.options.clone();
    let mut shows_example = false;
    let mut overrides = BTreeMap::new();
    for source in &plan.sources {
        if let SourceKind::Upstream(model) = &source.kind {
            shows_example |= model.instructions;
            for (name, value) in &model.overrides {
                overrides.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
    }
    options.extend(overrides);
    if shows_example {
        let examples = match options.get("examples") {
            Some(Value::Array(examples)) => examples.clone(),
            Some(example) => vec![example.clone()],
            None => Vec::new(),
        };
        options.insert("examples".to_owned(), Value::Array([vec![json!("own")], examples].concat()));
    }
    options
}

/// Writes an evaluation of the recorded files with the contract of the plan. Copies the files that the
/// contract names.
fn evaluation(plan: &EvalPlan, file_names: &[String], folder: &Path) -> Result<String> {
    let contract = &plan.file.contract;
    let mut dialects = contract.names();
    if !dialects.is_empty() {
        for contract in &plan.contracts {
            if !dialects.contains(&contract.entry.name) {
                dialects.push(contract.entry.name);
            }
        }
    }
    let mut section = Map::new();
    section.insert("dialects".to_owned(), json!(dialects));
    if let Some(profile) = &contract.profile {
        section.insert("profile".to_owned(), json!(profile));
    }
    for (name, file) in [("tools", &contract.tools), ("structure", &contract.structure)] {
        let Some(file) = file else { continue };
        let extension = file.extension().map(|it| it.to_string_lossy()).unwrap_or_default();
        let copy_name = format!("{name}.{extension}");
        let source_path = plan.folder.join(file);
        fs::copy(&source_path, folder.join(&copy_name))
            .with_context(|| format!("cannot copy {}", source_path.display()))?;
        section.insert(name.to_owned(), json!(copy_name));
    }
    section.insert("options".to_owned(), json!(reading_options(plan)));
    let sources: Vec<Value> = plan
        .sources
        .iter()
        .zip(file_names)
        .map(|(source, file)| {
            let mut section = json!({"name": source.name, "recorded": file});
            if !source.prices.is_empty() {
                section["prices"] = json!(source.prices);
            }
            section
        })
        .collect();
    let document = json!({
        "max_reasks": plan.file.max_reasks,
        "currency": plan.currency,
        "contract": section,
        "sources": sources,
    });
    Ok(format!("# The replies of the run `{}`.\n{}", comment(&plan.name), toml::to_string(&document)?))
}

/// Returns a text that is safe in a comment.
fn comment(text: &str) -> String {
    text.chars().map(output::visible_char).collect()
}

/// Writes a configuration with a replay upstream for each recorded file. A file without a reply is left out, and
/// named on standard error: no server starts with it.
fn configuration(plan: &EvalPlan, file_names: &[String], source_has_reply: &[bool]) -> Result<String> {
    let mut upstreams = Map::new();
    for ((source, file), has_reply) in plan.sources.iter().zip(file_names).zip(source_has_reply) {
        if *has_reply {
            upstreams.insert(source.name.clone(), json!({"kind": "replay", "url": file}));
            continue;
        }
        let message = format!(
            "the source `{}` has no reply, so tambour.toml has no upstream that replays it",
            source.name
        );
        output::print_error(&message);
    }
    let text = toml::to_string(&json!({"upstreams": upstreams}))?;
    Ok(format!("# Start the server in this folder: `tambour serve --config tambour.toml`.\n{text}"))
}

fn create(path: &Path) -> Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(BufWriter::new(file))
}

fn write_line(file: &mut BufWriter<File>, line: &Value) -> Result<()> {
    writeln!(file, "{line}").context("cannot write a recording")
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
