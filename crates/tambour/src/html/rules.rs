//! Rules of inline HTML. Examples are Markdown texts.

use crate::finding::rules;

rules! {
    HTML_FORBIDDEN = "html_forbidden" ["F-236"] Must
        "inline HTML is span, br, b, strong, i, em, u, s and ruby with rt and rp",
        broken "<div>a</div>",
        correct "<b>a</b>";
    HTML_ATTRIBUTE = "html_attribute" ["F-236"] Must
        "the only attribute is the style of a span",
        broken "<b class=\"x\">a</b>",
        correct "<b>a</b>";
    HTML_STYLE = "html_style" ["F-236"] Must
        "a style sets color, background-color, font-weight, font-style or text-decoration, to a plain value",
        broken "<span style=\"color: url(x)\">a</span>",
        correct "<span style=\"color: red\">a</span>";
    HTML_COMMENT = "html_comment" ["F-236"] Info
        "a comment is not shown",
        broken "a<!-- b -->",
        correct "a";
    HTML_UNBALANCED = "html_unbalanced" ["F-236"] Should
        "every opened tag is closed inside the tag around it, and no other tag is closed",
        broken "<b>a",
        correct "<b>a</b>";
    // A `<` that begins no tag; it is escaped, so a client shows it as text.
    HTML_ESCAPED = "html_escaped" ["F-236"] Info
        "a `<` that does not begin a tag is followed by a space, a digit or the like",
        broken "<https://example.com>",
        correct "https://example.com and 1 < 2";
}
