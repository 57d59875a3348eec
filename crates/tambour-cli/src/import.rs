//! `tambour import`: converts cards, lorebooks and presets of other programs to prompts.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tambour::limits::ImportLimits;
use tambour_prompt::card::normalize::normalize_entry;
use tambour_prompt::card::{ImportedFile, ImportedFileKind, import_file};
use tambour_prompt::skein::from_import;

use crate::{CommandOutcome, input, output};

/// Import character cards, lorebooks and presets (JSON, PNG, CHARX) as prompts
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    echo '{\"name\":\"Ada\",\"first_mes\":\"Hm?\"}' >/tmp/ada.json; tambour import /tmp/ada.json\n  \
    echo '{\"name\":\"Ada\",\"first_mes\":\"Hm?\"}' >/tmp/ada.json; tambour import --json /tmp/ada.json\n\n\
    With --out each file becomes a Skein in that folder, named after the character or the book; one that is there already is replaced. \
    --json prints an object a line: kind, version, name, card, entries, warnings.\n\
    Exit code 1: a file is broken; nothing of it is written, the others are.")]
pub(crate) struct ImportCommand {
    /// Folder for the prompts; created if missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the imported content as JSON
    #[arg(long)]
    json: bool,
    /// Write V3 JSON instead of prompts
    #[arg(long, requires = "out")]
    v3: bool,
    /// Cards, lorebooks or presets
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

pub(crate) fn run(args: &ImportCommand) -> Result<CommandOutcome> {
    if args.files.len() > 1 && args.out.is_none() && !args.json {
        bail!("several files need --out DIR or --json");
    }
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let mut outcome = CommandOutcome::Success;
    let mut used_names = HashSet::new();
    for path in &args.files {
        let bytes = match read_limited(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                output::print_error(&format!("{error:#}"));
                outcome = CommandOutcome::UsageError;
                continue;
            }
        };
        match import_file(&input::display_name(Some(path)), &bytes, &ImportLimits::default()) {
            Ok(imported_file) => write_import(args, &imported_file, &mut used_names)?,
            Err(error) => {
                let place = error.location().map(|place| {
                    format!(" (line {}, column {}): {}", place.line, place.column, place.excerpt)
                });
                print_message(&format!("{error}{}", place.unwrap_or_default()));
                if outcome == CommandOutcome::Success {
                    outcome = CommandOutcome::Failed;
                }
            }
        }
    }
    Ok(outcome)
}

/// Reads a file that is not larger than the limit of an import.
fn read_limited(path: &Path) -> Result<Vec<u8>> {
    let max_bytes = ImportLimits::default().file as u64;
    let length = fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0);
    if length > max_bytes {
        bail!("{}: {length} bytes, at most {max_bytes} are read", input::display_name(Some(path)));
    }
    input::read_raw(Some(path))
}

/// Prints a message whose text may come from a file, on standard error.
fn print_message(text: &str) {
    output::print_error(&text.chars().map(output::visible_char).collect::<String>());
}

/// Prints an imported file or writes it to the folder, as the arguments say.
fn write_import(
    args: &ImportCommand,
    imported_file: &ImportedFile,
    used_names: &mut HashSet<String>,
) -> Result<()> {
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", import_json(imported_file))?;
    } else {
        for warning in &imported_file.warnings {
            print_message(&format!("{}: {warning}", imported_file.name));
        }
    }
    match &args.out {
        Some(folder) => {
            let (text, extension) = if args.v3 {
                (format!("{}\n", serde_json::to_string_pretty(&imported_file.export())?), "json")
            } else {
                (from_import(imported_file).to_yaml(), "yaml")
            };
            let path = folder.join(unique_file_name(&imported_file.name, extension, used_names));
            // Writing to a temporary name and renaming leaves no file half written.
            let temporary_path = path.with_extension("part");
            fs::write(&temporary_path, text)
                .and_then(|()| fs::rename(&temporary_path, &path))
                .with_context(|| format!("cannot write {}", path.display()))?;
            if !args.json {
                writeln!(stdout, "{}", path.display())?;
            }
        }
        None if !args.json => write!(stdout, "{}", from_import(imported_file).to_yaml())?,
        None => {}
    }
    stdout.flush()?;
    Ok(())
}

/// Describes an import as JSON, with the normal form of each entry's text.
fn import_json(imported_file: &ImportedFile) -> Value {
    let entries = imported_file.entries.iter().map(|entry| {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        value["normalised"] = normalize_entry(&entry.title, &entry.content).render().into();
        value
    });
    let mut out = json!({
        "kind": imported_file.kind,
        "version": imported_file.version,
        "name": imported_file.name,
        "card": imported_file.card,
        "entries": entries.collect::<Vec<_>>(),
        "warnings": imported_file.warnings,
    });
    if imported_file.kind == ImportedFileKind::Preset {
        out["preset"] = serde_json::to_value(&imported_file.preset).unwrap_or_default();
    }
    out
}

/// Maximum number of characters that a file name takes from the name of the imported content.
const MAX_STEM_CHARS: usize = 60;

/// Makes a file name, unique within this run, of letters, digits, `_` and `-`. Names that differ only in
/// case count as equal, since some file systems ignore case.
fn unique_file_name(name: &str, extension: &str, used_names: &mut HashSet<String>) -> String {
    let safe_char = |c: char| if c.is_alphanumeric() || c == '_' { c } else { '-' };
    let stem: String = name.chars().take(MAX_STEM_CHARS).map(safe_char).collect();
    let stem = stem.trim_matches('-');
    let stem = if stem.is_empty() { "unnamed" } else { stem };
    let mut number = 1;
    loop {
        let file =
            if number == 1 { format!("{stem}.{extension}") } else { format!("{stem}-{number}.{extension}") };
        if used_names.insert(file.to_lowercase()) {
            return file;
        }
        number += 1;
    }
}
