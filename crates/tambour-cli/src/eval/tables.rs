//! Report as tables: for a terminal, and in Markdown.

use comfy_table::{ContentArrangement, Table, presets};

use super::figures::{Report, ReportRow, format_quantiles, format_share, percent, rule_label};
use crate::output;

/// Names of the columns of the first table.
const HEADER: [&str; 13] = [
    "source",
    "model",
    "dialect",
    "replies",
    "valid",
    "repaired",
    "usable",
    "structured",
    "re-asks",
    "no reply",
    "first text",
    "tokens",
    "cost",
];
/// Number of rules that are listed for a row.
const MAX_RULES: usize = 10;

/// Returns the cells of a row, in the order of [`HEADER`].
pub(super) fn row_cells(row: &ReportRow, currency: &str) -> [String; 13] {
    [
        row.source.clone(),
        row.model.clone(),
        row.dialect.to_owned(),
        row.replies.to_string(),
        format_share(row.valid),
        format_share(row.repaired),
        format_share(row.usable),
        format_share(row.structured),
        row.reasks.to_string(),
        row.failed.to_string(),
        format_quantiles(row.first_text_ms),
        row.format_tokens(),
        row.format_cost(currency),
    ]
}

/// Returns the header of the first table.
pub(super) fn header() -> [&'static str; 13] {
    HEADER
}

/// Formats the report for a terminal.
pub(super) fn format_table(report: &Report) -> String {
    let mut table = new_table(&HEADER);
    for row in &report.rows {
        table.add_row(row_cells(row, &report.currency).map(|cell| visible(&cell)));
    }
    let mut out = table.trim_fmt() + "\n\n";
    let mut yields =
        new_table(&["answers by step", "constrained", "plain", "repaired", "reasked", "fallback"]);
    for row in &report.rows {
        let counts = row.yields.entries().map(|(_, count)| count.to_string());
        yields.add_row([vec![visible(&row.label())], counts.to_vec()].concat());
    }
    out += &(yields.trim_fmt() + "\n");
    if report.rows.iter().any(|row| !row.rules.is_empty()) {
        let mut rules = new_table(&["broken rules as written", "findings", "replies", "share"]);
        for row in &report.rows {
            for figure in row.rules.iter().take(MAX_RULES) {
                rules.add_row([
                    visible(&format!("{}: {}", row.label(), rule_label(figure))),
                    figure.findings.to_string(),
                    figure.replies.to_string(),
                    share_of(figure.replies, row.replies),
                ]);
            }
        }
        out += &format!("\n{}\n", rules.trim_fmt());
    }
    if let Some(comparison) = &report.comparison {
        let lines = comparison.lines();
        out += "\n";
        out += &if lines.is_empty() {
            "compared with the earlier run: no change\n".to_owned()
        } else {
            lines.iter().map(|line| format!("{line}\n")).collect()
        };
    }
    out
}

/// Formats the report in Markdown.
pub(super) fn format_markdown(report: &Report) -> String {
    let mut out = format!("# {}\n\n", escape_markdown(&report.name));
    out += &markdown_row(HEADER);
    out += &markdown_row(HEADER.map(|_| "---"));
    for row in &report.rows {
        out += &markdown_row(row_cells(row, &report.currency).map(|cell| escape_markdown(&cell)));
    }
    out += "\n## Answers by step\n\n";
    let steps = report.rows.first().map(|row| row.yields.entries().map(|(name, _)| name)).unwrap_or_default();
    out += &markdown_row([""].into_iter().chain(steps));
    out += &markdown_row(["---"; 6]);
    for row in &report.rows {
        let counts = row.yields.entries().map(|(_, count)| count.to_string());
        out += &markdown_row([escape_markdown(&row.label())].into_iter().chain(counts));
    }
    if report.rows.iter().any(|row| !row.rules.is_empty()) {
        out += "\n## Broken rules as written\n\n";
        out += &markdown_row(["", "rule", "code", "severity", "findings", "replies"]);
        out += &markdown_row(["---"; 6]);
        for row in &report.rows {
            for figure in row.rules.iter().take(MAX_RULES) {
                out += &markdown_row([
                    escape_markdown(&row.label()),
                    figure.rule.clone(),
                    format!("`{}`", figure.code),
                    output::severity_name(figure.severity).to_owned(),
                    figure.findings.to_string(),
                    figure.replies.to_string(),
                ]);
            }
        }
    }
    if let Some(comparison) = &report.comparison {
        out += "\n## Compared with the earlier run\n\n";
        if let Some(field) = &comparison.difference {
            out += &format!("The earlier run has another {}.\n\n", escape_markdown(field));
        }
        out += &markdown_row(["", "figure", "before", "after", "drop", ""]);
        out += &markdown_row(["---"; 6]);
        for share in &comparison.shares {
            out += &markdown_row([
                escape_markdown(&share.row),
                share.figure.to_owned(),
                percent(share.before),
                percent(share.after),
                share.drop_text(),
                if share.is_regression { "**regression**" } else { "" }.to_owned(),
            ]);
        }
        for row in &comparison.missing {
            let row = escape_markdown(row);
            out += &markdown_row([&*row, "", "", "-", "", "**missing**"]);
        }
    }
    out
}

/// Formats the share of a count in percent.
pub(super) fn share_of(count: usize, total: u64) -> String {
    percent(super::stats::Share::new(count as u64, total).share)
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    match output::terminal_width() {
        Some(columns) => {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns.max(80));
        }
        // One row a line, for other programs.
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    if let Some(column) = table.column_mut(0) {
        column.set_padding((0, 1));
    }
    table
}

fn markdown_row(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let cells: Vec<String> = cells.into_iter().map(|cell| cell.as_ref().to_owned()).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Escapes a text for a cell of a Markdown table.
fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().map(output::visible_char) {
        if c.is_ascii_punctuation()
            && matches!(c, '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '&' | '#' | '!' | '~')
        {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn visible(text: &str) -> String {
    text.chars().map(output::visible_char).collect()
}
