//! Report as one HTML page: tables and plots, with no script and no request to anywhere.

use std::fmt::Write as _;

use tambour::event::ReplyWorth;

use super::compare::Comparison;
use super::figures::{Report, percent};
use super::plots;
use super::tables::{header, row_cells};

/// Maximum number of prompts in the list of those without a usable reply.
const MAX_LISTED: usize = 200;

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1c2330;--soft:#5b6577;--page:#fff;--line:#d8dde6;--a:#2f6fbd;--b:#3a9a6b;--c:#8a63c4;--d:#d0892a;--e:#c2453f}\
@media(prefers-color-scheme:dark){:root{--text:#e6eaf1;--soft:#a2adbf;--page:#14181f;--line:#333b48;--a:#6ea8ea;--b:#62c294;--c:#b494e6;--d:#e2aa5c;--e:#e5746e}}\
body{margin:2rem auto;max-width:70rem;padding:0 1rem;font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--page)}\
.scroll{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0 1.5rem}th,td{padding:.3rem .7rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}\
td,th{white-space:nowrap}.texts td{white-space:normal;overflow-wrap:anywhere}figcaption,.note{color:var(--soft);text-align:left}figure{margin:1.5rem 0}svg{width:100%;height:auto}\
svg text{font-size:13px;fill:var(--text)}.label{text-anchor:end}.head{font-weight:600}.tick{text-anchor:middle;fill:var(--soft)}\
.grid{stroke:var(--line)}.whisker{stroke:var(--soft);stroke-width:2}.dot{fill:var(--a)}.time{fill:var(--a)}.fault{fill:var(--d)}\
.constrained{fill:var(--c);background:var(--c)}.plain{fill:var(--b);background:var(--b)}.repaired{fill:var(--a);background:var(--a)}\
.reasked{fill:var(--d);background:var(--d)}.fallback{fill:var(--e);background:var(--e)}\
.key span{display:inline-block;width:.8rem;height:.8rem;margin:0 .3rem 0 1rem;border-radius:2px}.bad{color:var(--e);font-weight:600}";

/// Formats the report.
pub(super) fn format(report: &Report) -> String {
    let name = escape(&report.name);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{name}</title>\
         <style>{STYLE}</style></head><body>\n<h1>{name}</h1>\n"
    );
    out += &table("", &header(), report.rows.iter().map(|row| row_cells(row, &report.currency).to_vec()));
    out += &figure(
        "Dots are shares of the replies received; lines are intervals of 95 % (Wilson).",
        &plots::plot_shares(&report.rows),
    );
    out += &figure(&yield_key(report), &plots::plot_yields(&report.rows));
    if let Some(plot) = plots::plot_first_text(&report.rows) {
        out += &figure("Time to the first text: bar to the median, line to the ninth decile.", &plot);
    }
    if let Some(plot) = plots::plot_rules(report) {
        out += &figure("Replies that broke a rule as written, over all rows.", &plot);
    }
    if let Some(comparison) = &report.comparison {
        out += &comparison_section(comparison);
    }
    out += &unusable_section(report);
    out + "</body></html>\n"
}

/// Lists the prompts without a usable reply.
fn unusable_section(report: &Report) -> String {
    let is_unusable = |worth: ReplyWorth, is_failed: bool| is_failed || worth != ReplyWorth::Usable;
    let unusable: Vec<_> = report
        .results
        .iter()
        .filter(|(_, _, result)| is_unusable(result.worth, result.failure.is_some()))
        .collect();
    if unusable.is_empty() {
        return "<h2>Prompts without a usable reply</h2>\n<p>None.</p>\n".to_owned();
    }
    let rows = unusable.iter().take(MAX_LISTED).map(|(row, prompt_id, result)| {
        let reason = match (&result.failure, result.finding_lines.as_slice()) {
            (Some(failure), _) => format!("{}: {}", failure.code, failure.message),
            (None, []) => "it was cut, or repeats an example".to_owned(),
            (None, lines) => lines.join("\n"),
        };
        vec![report.rows[*row].label(), prompt_id.clone(), result.reasks.to_string(), reason]
    });
    let mut out = "<h2>Prompts without a usable reply</h2>\n".to_owned();
    out += &table("texts", &["", "prompt", "re-asks", "findings of the first reply"], rows);
    if unusable.len() > MAX_LISTED {
        let _ = writeln!(out, "<p class=\"note\">and {} more</p>", unusable.len() - MAX_LISTED);
    }
    out
}

fn comparison_section(comparison: &Comparison) -> String {
    let mut out = "<h2>Compared with the earlier run</h2>\n".to_owned();
    let _ = writeln!(
        out,
        "<p class=\"note\">A share fails when the whole interval of its drop (Newcombe, 95 %) lies above {:.1} points.</p>",
        comparison.max_drop * 100.0
    );
    if let Some(field) = &comparison.difference {
        let _ = writeln!(
            out,
            "<p class=\"note\">The earlier run has another <code>{}</code>.</p>",
            escape(field)
        );
    }
    let rows = comparison.shares.iter().map(|share| {
        let verdict = if share.is_regression { "regression" } else { "" };
        vec![
            share.row.clone(),
            share.figure.to_owned(),
            percent(share.before),
            percent(share.after),
            share.drop_text(),
            verdict.to_owned(),
        ]
    });
    out += &table("", &["", "figure", "before", "after", "drop", ""], rows);
    for row in &comparison.missing {
        let _ = writeln!(out, "<p class=\"bad\">{} has no reply in this run</p>", escape(row));
    }
    out
}

/// Explains the colours of the steps.
fn yield_key(report: &Report) -> String {
    let names = report.rows.first().map(|row| row.yields.entries()).unwrap_or_default();
    let keys: String =
        names.iter().map(|(name, _)| format!("<span class=\"{name}\"></span>{name}")).collect();
    format!("Answers by the step that gave them: <span class=\"key\">{keys}</span>")
}

/// Frames a plot; `caption` is HTML.
fn figure(caption: &str, plot: &str) -> String {
    format!("<figure>{plot}<figcaption>{caption}</figcaption></figure>\n")
}

fn table(class: &str, header: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut out = format!("<div class=\"scroll\"><table class=\"{class}\"><thead><tr>");
    out.extend(header.iter().map(|cell| format!("<th>{}</th>", escape(cell))));
    out += "</tr></thead><tbody>\n";
    for row in rows {
        out += "<tr>";
        for cell in row {
            let class = if cell == "regression" { " class=\"bad\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", escape(&cell));
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div>\n"
}

/// Escapes a text for HTML; line breaks become elements.
fn escape(text: &str) -> String {
    text.split('\n').map(plots::escape_text).collect::<Vec<_>>().join("<br>")
}
