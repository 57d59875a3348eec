//! `tambour rules`: lists all rules, or explains one.

use std::io::{self, Write};

use anyhow::Result;
use comfy_table::{ContentArrangement, Table, presets};
use tambour::finding::{Rule, RuleLevel};
use tambour_prompt::catalogue::{self, CatalogueEntry};

use crate::{CommandOutcome, output};

/// List all rules, or explain one with a broken and a correct example
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  tambour rules\n  tambour rules T-032\n  tambour rules final_missing")]
pub(crate) struct RulesCommand {
    /// Row of the specification, such as T-032, or code of a finding, such as final_missing
    id: Option<String>,
}

pub(crate) fn run(args: &RulesCommand) -> Result<CommandOutcome> {
    let text = match &args.id {
        None => format_table(),
        Some(id) => {
            let entries: Vec<CatalogueEntry> = catalogue::find(id).collect();
            if entries.is_empty() {
                anyhow::bail!("{}", unknown_rule_message(id));
            }
            entries.into_iter().map(explain_rule).collect::<Vec<_>>().join("\n")
        }
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(CommandOutcome::Success)
}

fn format_table() -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["code", "rows", "level", "dialect", "title"]);
    match output::terminal_width() {
        Some(columns) => {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns.max(60));
        }
        // One rule a line, for other programs.
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    for CatalogueEntry { owner, rule, .. } in catalogue::all() {
        table.add_row([rule.code, &rule.rows.join(" "), level_name(rule), owner, rule.title]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 1));
    }
    table.trim_fmt() + "\n"
}

fn explain_rule(CatalogueEntry { owner, rule, .. }: CatalogueEntry) -> String {
    let Rule { code, rows, title, broken, correct, .. } = rule;
    format!(
        "{code}  ({}, {}, {owner})\n{title}\n\n{}Broken:\n{}\nCorrect:\n{}",
        rows.join(" "),
        level_name(rule),
        settings_note(rule),
        indent_text(broken),
        indent_text(correct),
    )
}

/// Describes the settings under which the examples of a rule are read; empty for the defaults.
fn settings_note(rule: &Rule) -> String {
    match rule.with {
        [] => String::new(),
        settings => {
            format!("Read with:\n{}\n", settings.iter().map(|pair| indent_text(pair)).collect::<String>())
        }
    }
}

fn indent_text(text: &str) -> String {
    text.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect()
}

fn level_name(rule: &Rule) -> &'static str {
    match rule.level {
        RuleLevel::Must => "must",
        RuleLevel::Should => "should",
        RuleLevel::Info => "info",
    }
}

fn unknown_rule_message(id: &str) -> String {
    let similar_names = catalogue::similar_ids(id);
    let hint = if similar_names.is_empty() {
        "`tambour rules` lists all".to_owned()
    } else {
        format!("did you mean {}?", similar_names.join(", "))
    };
    format!("there is no rule `{id}`; {hint}")
}
