//! Code passes unchanged; text that only some readers of Markdown take for code is escaped.

use tambour::html::{HtmlMode, sanitize};

use super::{escape_html, finding_lines, sanitize_both};

#[test]
fn spans_and_fences_stay() {
    // F-105
    for text in [
        "`<div>` and ``a ` <script>x</script>``",
        "use `Vec<String>`, not `<b>`",
        "```html\n<script>alert(1)</script>\n<!-- c -->\n```\n",
        "~~~\n<img src=x>\n~~~\n",
        "> ```\n> <div>\n> ```\n",
        "| a | b |\n|---|---|\n| `<div>` | `<p>` |\n",
        "see [the docs](https://example.com/a(b)) for `<div>`",
        "www.example.com and `<div>`",
    ] {
        assert_eq!(sanitize_both(text), [text, text]);
        assert!(finding_lines(text).is_empty());
    }
    // Entities in code are not decoded.
    assert_eq!(escape_html("`&lt;b>` &lt;"), "`&lt;b>` &lt;");
}

#[test]
fn a_backtick_that_does_not_close_carries_nothing_past() {
    // F-105
    for (text, expected) in [
        ("` <img src=x>", "` &lt;img src=x>"),
        ("` <img src=x>\n`", "` &lt;img src=x>\n`"),
        ("`` <img src=x> `", "`` &lt;img src=x> `"),
        ("\\`<img src=x>`", "\\`&lt;img src=x>`"),
        ("```` <div> ``` `<p>`", "```` &lt;div> ``` `<p>`"),
        ("<img title=\"`\" src=x> `", "&lt;img title=\"`\" src=x> `"),
    ] {
        assert_eq!(escape_html(text), expected, "{text:?}");
    }
    let long = format!("` <b>x</b> <div> {} ` <i>", "x".repeat(2000));
    let result = escape_html(&long);
    assert!(result.starts_with("` <b>x</b> &lt;div> x") && result.ends_with("x &#96; <i></i>"), "{result}");
}

#[test]
fn what_others_may_not_take_for_code_is_escaped() {
    // F-104, F-105: a backtick may belong to a link, an address or a table cell, and means nothing in HTML blocks.
    for text in [
        "`\n`<img src=x onerror=y>`",
        "[a](`) <img src=x onerror=y> `)",
        "[a](b \"`\") <img src=x onerror=y> `",
        "[a](b ') `') <img src=x onerror=y> `",
        "[a](\n`) <img src=x onerror=y> `",
        "https://a.b/` <img src=x onerror=y> `",
        "www.a.b/` <img src=x onerror=y> `",
        "<https://a`> <img src=x onerror=y> `",
        "| a |\n|---|\n| ` | <img src=x onerror=y> | ` |\n",
        "<b>\n` <img src=x onerror=y> `\n",
        "- <br>\n  ` <img src=x onerror=y> `\n",
        "<b>\n```\n\n<img src=x onerror=y>\n",
        "<b>\n```\n<img src=x onerror=y>\n```\n",
    ] {
        for mode in [HtmlMode::Escape, HtmlMode::Strip] {
            let (result, _) = sanitize(text, mode);
            assert!(!result.contains("<img"), "{text:?} gives {result:?}");
        }
    }
    // No backtick belongs to an escaped address.
    assert_eq!(escape_html("<1`@a.b> <img> `"), "&lt;1`@a.b> <img> `");
    // A blank line ends the effect of a link or an HTML block.
    assert_eq!(escape_html("[a](`)\n\n`<p>`"), "[a](`)\n\n`<p>`");
    assert_eq!(escape_html("<b>\nx\n\n`<p>`</b>"), "<b>\nx\n\n`<p>`</b>");
}
