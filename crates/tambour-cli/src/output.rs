//! Output that all commands share: error messages, colours, findings in one line.

use std::io::{self, IsTerminal, Write};

use tambour::{Finding, Severity};

/// Prints an error message on standard error.
pub(crate) fn print_error(message: &str) {
    // A failed write cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "tambour: {message}");
}

/// Writes lines to standard error.
pub(crate) fn print_note(lines: &str) {
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// Returns `true` if `stream` gets colours: it is a terminal that is not `dumb`, and `NO_COLOR` is unset or
/// empty.
pub(crate) fn is_coloured(stream: &impl IsTerminal) -> bool {
    let is_opted_out = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    stream.is_terminal() && !is_opted_out && !is_dumb
}

/// Width of the terminal in columns; `None` if standard output is not a terminal.
pub(crate) fn terminal_width() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
}

/// Formats a finding in one line: place, severity, rule and code, message, repair.
pub(crate) fn finding_line(name: &str, finding: &Finding) -> String {
    let Finding { rule, code, severity, line, column, message, repair, .. } = finding;
    let severity = severity_name(*severity);
    let repair = repair.as_deref().map(|repair| format!(" ({repair})")).unwrap_or_default();
    let line = format!("{name}:{line}:{column}: {severity}: {rule} {code}: {message}{repair}");
    line.chars().map(visible_char).collect()
}

/// Public name of a severity.
pub(crate) fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// Replaces characters that control the terminal or the writing direction with pictures or U+FFFD, and tabs
/// with blanks, since texts come from models.
pub(crate) fn visible_char(c: char) -> char {
    match c {
        '\t' => ' ',
        // The pictures of these characters are U+2400 to U+241F, in the same order.
        '\0'..='\u{1F}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{FFFD}'),
        '\u{7F}' => '\u{2421}',
        '\u{80}'..='\u{9F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => '\u{FFFD}',
        c => c,
    }
}
