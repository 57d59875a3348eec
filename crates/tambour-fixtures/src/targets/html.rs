//! Fuzz target: text with inline HTML.

use pulldown_cmark::{Event, Options, Parser};
use tambour::html::{HtmlMode, HtmlSanitizer, SanitizedPiece};
use tambour::limits::Limits;
use tambour::span::Place;

use super::split_text;
use crate::random::RandomSource;

/// Sanitises text after its first byte, which seeds the cuts and chooses the mode (bit 0) and the limits (bit
/// 1).
///
/// # Panics
/// The result depends on the cuts, changes when it is sanitised again, or contains tags that a Markdown
/// reader passes on although they are not on the allow list; or more text is held back than documented.
pub fn check_html(data: &[u8]) {
    let [seed, input @ ..] = data else { return };
    let text = String::from_utf8_lossy(input);
    let mode = if seed & 1 == 0 { HtmlMode::Escape } else { HtmlMode::Strip };
    let mut limits = Limits::default();
    if seed & 2 == 2 {
        (limits.tag, limits.line) = (40, 48);
    }
    let sanitize_pieces = |text: &str, pieces: &[&str]| {
        let (mut result, mut reports) = (String::new(), Vec::new());
        let mut sanitizer = HtmlSanitizer::new(mode, &limits);
        for piece in pieces {
            sanitizer.push(piece, &mut |piece| match piece {
                SanitizedPiece::Text(text) => result.push_str(text),
                SanitizedPiece::Report(report) => reports.push(report),
            });
            assert!(sanitizer.held_bytes() <= limits.tag.max(limits.line), "{text:?}");
        }
        sanitizer.finish(&mut |piece| match piece {
            SanitizedPiece::Text(text) => result.push_str(text),
            SanitizedPiece::Report(report) => reports.push(report),
        });
        (result, reports)
    };
    let uncut = sanitize_pieces(&text, &[&text]);
    let mut random = RandomSource::new(u64::from(*seed));
    let cuts = random.random_cuts(text.len());
    assert_eq!(sanitize_pieces(&text, &split_text(&text, &cuts)), uncut, "cut: {text:?}");
    let every_offset: Vec<usize> = (1..text.len()).collect();
    assert_eq!(sanitize_pieces(&text, &split_text(&text, &every_offset)), uncut, "cut everywhere: {text:?}");
    for report in &uncut.1 {
        assert!(report.place.offset <= report.end && report.end <= text.len(), "{report:?} of {text:?}");
        assert_eq!(report.place, Place::START.end_of(&text[..report.place.offset]), "{text:?}");
    }
    // A limit may apply at another place in the result, which is sanitised again only if no limit can apply.
    if limits == Limits::default() && uncut.0.len() < limits.line {
        let reread = sanitize_pieces(&uncut.0, &[&uncut.0]).0;
        assert_eq!(reread, uncut.0, "the second time, {mode:?}: {text:?}");
    }
    // No chat renders definition lists and metadata blocks.
    let excluded_options = Options::ENABLE_DEFINITION_LIST
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    for options in [Options::empty(), Options::all() - excluded_options] {
        for event in Parser::new_ext(&uncut.0, options) {
            if let Event::Html(html) | Event::InlineHtml(html) = event {
                let html = html.into_string();
                assert!(is_listed(&html), "{html:?} is HTML in {:?} of {text:?}, {mode:?}", uncut.0);
            }
        }
    }
}

/// Returns `true` if every tag that a browser would see is on the allow list and has no attributes, except
/// that a `span` may have a style.
fn is_listed(html: &str) -> bool {
    html.match_indices('<').all(|(at, _)| {
        let after_mark = html[at + 1..].trim_start_matches('/');
        let name = after_mark.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        let tag = after_mark.find('>').map_or(after_mark, |end| &after_mark[..end]);
        let is_bare = tag.len() == name.len() || matches!(&tag[name.len()..], "/" | " /");
        // The attribute follows the four letters of `span`.
        let is_styled_span = name.eq_ignore_ascii_case("span")
            && tag[4..].to_ascii_lowercase().starts_with(" style=\"")
            && tag.matches('"').count() == 2
            && tag.ends_with('"');
        let is_text = !after_mark.starts_with(|c: char| c.is_ascii_alphabetic() || c == '!' || c == '?');
        let allowed_names = ["span", "br", "b", "strong", "i", "em", "u", "s", "ruby", "rt", "rp"];
        let is_allowed = allowed_names.iter().any(|allowed_name| allowed_name.eq_ignore_ascii_case(name));
        is_text || is_allowed && (is_bare || is_styled_span)
    })
}

/// Makes an input for [`check_html()`].
#[must_use]
pub fn random_html_input(random: &mut RandomSource) -> Vec<u8> {
    let mut data = vec![random.next_bits() as u8];
    let soup = random_html(random, true);
    if random.below(3) == 0 {
        data.extend(random.mutate(soup.as_bytes()))
    } else {
        data.extend(soup.bytes())
    }
    data
}

/// Makes text of tags, half tags and their surroundings, with Markdown code if `has_code` is set.
#[must_use]
pub fn random_html(random: &mut RandomSource, has_code: bool) -> String {
    let mut soup = String::new();
    for _ in 0..1 + random.below(24) {
        let pieces = if has_code && random.below(3) == 0 { MARKDOWN_PIECES } else { HTML_PIECES };
        soup.push_str(random.pick::<&str>(pieces));
    }
    soup
}

const HTML_PIECES: &[&str] = &[
    "<b>",
    "</b>",
    "<i>",
    "</i>",
    "<B>",
    "</ b>",
    "<span style=\"color:red\">",
    "</span>",
    "<span style='color:url(x)'>",
    "<span class=x style=\"color: red; top:0\">",
    "<br>",
    "<br/>",
    "</br>",
    "<b/>",
    "<ruby>",
    "<rt>",
    "</rt>",
    "<rp>",
    "</ruby>",
    "<b onclick=x>",
    "<b\n>",
    "<img src=x onerror=y>",
    "<svg/onload=x>",
    "<a href=\"",
    "<div>",
    "</div>",
    "<script>",
    "</script>",
    "</script",
    "<script",
    "<style>",
    "</style>",
    "<!--",
    "-->",
    "--!>",
    "<!",
    "<?",
    "<![CDATA[",
    "]]>",
    "<",
    ">",
    "</",
    "/>",
    "=",
    "\"",
    "'",
    "<x a=\"",
    "<x a='",
    " ",
    "\n",
    "\n\n",
    "a",
    "text ",
    "onerror=y",
    "script",
    "<3",
    "<1@",
    "@",
    "&lt;",
    "&",
    "&#60;",
    "\0",
    "\u{b}",
    "中",
    "<textarea>",
    "<title>",
    "<plaintext>",
    "<math>",
    "<mi>",
    "<table>",
    "<p>",
    "style=",
    "b",
    "\t",
    "-",
    "!",
];

const MARKDOWN_PIECES: &[&str] = &[
    "`",
    "``",
    "```",
    "```\n",
    "\n```\n",
    "~~~\n",
    "\n~~~",
    "\n",
    "\n\n",
    "\n> ",
    "\n- ",
    "    ",
    "[a](",
    "](",
    ")",
    "(",
    "[",
    "]",
    "[x]: ",
    "| ",
    "|",
    "\n|---|---|\n",
    "\\",
    "*",
    "https://a.b/",
    "www.a.b",
    "<https://a",
    "<a@b.c>",
    "`<b>`",
    "`<img src=x>`",
    "<!-- ` -->",
    "<x a=\"`\">",
    "1. ",
    "# ",
    "$",
    "\"",
    "'",
    "<b>\n",
    "\n<br>\n",
    "\r\n",
];
