//! Plots of a report as SVG, without scripts and without other files.

use std::fmt::Write as _;

use super::figures::{Report, ReportRow, percent};
use super::stats::Share;
use crate::check::escape_xml;
use crate::output::visible_char;

/// Width of a plot, and of the column with its labels.
const WIDTH: usize = 900;
const LABEL_WIDTH: usize = 330;
/// Width of the drawing beside the labels, with room for numbers.
const PLOT_WIDTH: f64 = 480.0;
const ROW_HEIGHT: usize = 26;
/// Maximum number of characters of a label; the whole text is its tooltip.
const MAX_LABEL_CHARS: usize = 38;
/// Maximum number of rules in a plot.
const MAX_RULES: usize = 15;

/// Plots the shares of each row: a dot with its interval for each of the four figures.
pub(super) fn plot_shares(rows: &[ReportRow]) -> String {
    let mut body = axis(5 * rows.len());
    let mut line = 0;
    for row in rows {
        body += &label(line, &row.label(), "head");
        line += 1;
        for (name, share) in [
            ("valid as written", row.valid),
            ("usable after repair", row.repaired),
            ("usable with re-asks", row.usable),
            ("with its structure", row.structured),
        ] {
            body += &label(line, name, "");
            body += &interval(line, share, name);
            line += 1;
        }
    }
    svg("Shares of replies with intervals of 95 %", line, &body)
}

/// Plots the answers of each row by the step of the ladder that gave them.
pub(super) fn plot_yields(rows: &[ReportRow]) -> String {
    let mut body = axis(rows.len());
    for (line, row) in rows.iter().enumerate() {
        body += &label(line, &row.label(), "");
        let mut x = LABEL_WIDTH as f64;
        for (name, count) in row.yields.entries() {
            let width = Share::new(count, row.replies).share * PLOT_WIDTH;
            if count > 0 {
                let _ = write!(
                    body,
                    "<rect class=\"{name}\" x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\"><title>{name}: {count}</title></rect>",
                    line * ROW_HEIGHT + 4,
                    ROW_HEIGHT - 8,
                );
            }
            x += width;
        }
        body += &number(line, &row.replies.to_string());
    }
    svg("Answers by the step that gave them", rows.len(), &body)
}

/// Plots the time to the first text of each row: a bar to the median, a line to the ninth decile. `None` if no
/// reply has a time.
pub(super) fn plot_first_text(rows: &[ReportRow]) -> Option<String> {
    let longest = rows.iter().filter_map(|row| row.first_text_ms).map(|times| times.p90).max()?.max(1);
    let mut body = String::new();
    for (line, row) in rows.iter().enumerate() {
        body += &label(line, &row.label(), "");
        let Some(times) = row.first_text_ms else { continue };
        let width = |ms: u64| Share::new(ms, longest).share * PLOT_WIDTH;
        let y = line * ROW_HEIGHT;
        let _ = write!(
            body,
            "<rect class=\"time\" x=\"{LABEL_WIDTH}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"><title>median {} ms</title></rect>\
             <line class=\"whisker\" x1=\"{LABEL_WIDTH}\" x2=\"{:.1}\" y1=\"{}\" y2=\"{}\"/>",
            y + 7,
            width(times.median),
            ROW_HEIGHT - 14,
            times.median,
            LABEL_WIDTH as f64 + width(times.p90),
            y + ROW_HEIGHT / 2,
            y + ROW_HEIGHT / 2,
        );
        body += &number(line, &format!("{} / {} ms", times.median, times.p90));
    }
    Some(svg("Time to the first text: median and ninth decile", rows.len(), &body))
}

/// Plots the rules that were broken most often, over all rows. `None` if none was.
pub(super) fn plot_rules(report: &Report) -> Option<String> {
    let mut counts = std::collections::BTreeMap::<(&str, &str), usize>::new();
    for figure in report.rows.iter().flat_map(|row| &row.rules) {
        *counts.entry((&figure.rule, &figure.code)).or_default() += figure.replies;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.truncate(MAX_RULES);
    let largest = counts.first()?.1.max(1) as u64;
    let mut body = String::new();
    for (line, ((rule, code), count)) in counts.iter().enumerate() {
        body += &label(line, &format!("{rule} {code}"), "");
        let _ = write!(
            body,
            "<rect class=\"fault\" x=\"{LABEL_WIDTH}\" y=\"{}\" width=\"{:.1}\" height=\"{}\"/>",
            line * ROW_HEIGHT + 5,
            Share::new(*count as u64, largest).share * PLOT_WIDTH,
            ROW_HEIGHT - 10,
        );
        body += &number(line, &count.to_string());
    }
    Some(svg("Replies that broke a rule as written", counts.len(), &body))
}

/// Frames a drawing of so many lines.
fn svg(title: &str, lines: usize, body: &str) -> String {
    let height = lines * ROW_HEIGHT + 24;
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>{body}</svg>\n"
    )
}

/// Draws lines at quarters of the whole, with their numbers below.
fn axis(lines: usize) -> String {
    let bottom = lines * ROW_HEIGHT;
    (0..=4)
        .map(|quarter| {
            let x = LABEL_WIDTH as f64 + f64::from(quarter) * PLOT_WIDTH / 4.0;
            format!(
                "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{bottom}\"/>\
                 <text class=\"tick\" x=\"{x}\" y=\"{}\">{} %</text>",
                bottom + 16,
                quarter * 25,
            )
        })
        .collect()
}

fn label(line: usize, text: &str, class: &str) -> String {
    // The end of a label tells rows apart: model and dialect.
    let short = match text.char_indices().nth_back(MAX_LABEL_CHARS - 1) {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text.to_owned(),
    };
    format!(
        "<text class=\"label {class}\" x=\"{}\" y=\"{}\">{}<title>{}</title></text>",
        LABEL_WIDTH - 10,
        line * ROW_HEIGHT + 17,
        escape_text(&short),
        escape_text(text),
    )
}

/// Writes a number to the right of the drawing.
fn number(line: usize, text: &str) -> String {
    let x = LABEL_WIDTH as f64 + PLOT_WIDTH + 8.0;
    format!("<text class=\"number\" x=\"{x}\" y=\"{}\">{}</text>", line * ROW_HEIGHT + 17, escape_text(text))
}

/// Draws a share as a dot, with its interval as a line.
fn interval(line: usize, share: Share, name: &str) -> String {
    let x = |value: f64| LABEL_WIDTH as f64 + value * PLOT_WIDTH;
    let y = line * ROW_HEIGHT + ROW_HEIGHT / 2;
    format!(
        "<line class=\"whisker\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\"/>\
         <circle class=\"dot\" cx=\"{:.1}\" cy=\"{y}\" r=\"5\"><title>{name}: {} ({} to {})</title></circle>{}",
        x(share.low),
        x(share.high),
        x(share.share),
        percent(share.share),
        percent(share.low),
        percent(share.high),
        number(line, &percent(share.share)),
    )
}

/// Escapes a text for HTML and SVG; characters that control a terminal or the direction become visible.
pub(super) fn escape_text(text: &str) -> String {
    escape_xml(&text.chars().map(visible_char).collect::<String>())
}
