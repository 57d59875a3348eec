//! Placeholders of the instructions' template, which small models copy instead of filling them in.

/// The placeholders, without the dots that some end with.
const PLACEHOLDERS: [(&str, bool); 5] = [
    ("0-100", false),
    ("true|false", false),
    ("你的回复内容", true),
    ("评估理由", true),
    ("退出或继续的原因", true),
];

/// How the dots are written.
const DOTS: [&str; 3] = ["...", "…", "……"];

/// Whether a text is a placeholder that nobody filled in.
pub(super) fn is_placeholder(text: &str) -> bool {
    let text = text.trim();
    all().any(|(start, end)| text.strip_prefix(start) == Some(end))
}

/// Whether a text without white space in front may become a placeholder when more of it arrives.
pub(super) fn may_become(text: &str) -> bool {
    all().any(|(start, end)| match text.strip_prefix(start) {
        Some(rest) => end.starts_with(rest),
        None => start.starts_with(text),
    })
}

fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLACEHOLDERS.iter().flat_map(|(start, dotted)| {
        let ends = if *dotted { &DOTS[..] } else { &[""] };
        ends.iter().map(move |end| (*start, *end))
    })
}
