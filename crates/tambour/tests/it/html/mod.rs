//! The sanitiser of inline HTML.

mod code;
mod oracle;
mod styles;

use tambour::Profile;
use tambour::html::{HtmlMode, HtmlSanitizer, SanitizedPiece, sanitize};
use tambour::limits::Limits;

/// Result in both modes.
fn sanitize_both(text: &str) -> [String; 2] {
    [HtmlMode::Escape, HtmlMode::Strip].map(|mode| sanitize(text, mode).0)
}

fn escape_html(text: &str) -> String {
    sanitize(text, HtmlMode::Escape).0
}

/// Findings as `LINE:COLUMN CODE: message`.
fn finding_lines(text: &str) -> Vec<String> {
    let findings =
        sanitize(text, HtmlMode::Escape).1.into_iter().map(|report| report.judge(Profile::Lenient));
    findings.map(|f| format!("{}:{} {}: {}", f.line, f.column, f.code, f.message)).collect()
}

#[test]
fn what_is_on_the_list_passes() {
    // F-104, F-102
    for text in [
        "",
        "plain *Markdown* with [a link](https://example.com \"t\") & &amp; &lt;b&gt; \\< é 中",
        "<b>a</b> <strong>b</strong> <i>c</i> <em>d</em> <u>e</u> <s>f</s>",
        "a<br>b<br/>c<br />d",
        "<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>",
        "<span>a</span> <span style=\"color:red\">b</span> <SPAN STYLE=\"Color: #FFF; font-weight: bold;\">c</SPAN>",
        "<b>one\n\ntwo</b>\n<br>\n",
        "<span style=\"color:red\">\n- a\n- b\n</span>\n",
        "a < b, 1<2, <3, x <= y, a<中, <-, <$5>, 1 <(2)>, <>",
        "I <3 you <3",
    ] {
        assert_eq!(sanitize_both(text), [text, text]);
        assert!(finding_lines(text).is_empty(), "{text}: {:?}", finding_lines(text));
    }
}

#[test]
fn everything_else_is_escaped_or_taken_out() {
    // F-104
    for (text, escaped, stripped) in [
        ("<div>a</div>", "&lt;div>a&lt;/div>", "a"),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)>", ""),
        ("<svg/onload=alert(1)>x", "&lt;svg/onload=alert(1)>x", "x"),
        ("<a href=\"javascript:x\">y</a>", "&lt;a href=\"javascript:x\">y&lt;/a>", "y"),
        ("<IFRAME SRC='x'>", "&lt;IFRAME SRC='x'>", ""),
        ("<b:x>a<b-c>d<bb>", "&lt;b:x>a&lt;b-c>d&lt;bb>", "ad"),
        ("<!DOCTYPE html><?xml x?><![CDATA[x]]>", "&lt;!DOCTYPE html>&lt;?xml x?>&lt;![CDATA[x]]>", ""),
        ("<script>alert(1)</script>a", "a", "a"),
        ("a<ScRiPt x=\"<\">b", "a&lt;ScRiPt x=\"<\">b", "a&lt;ScRiPt x=\"<\">b"),
        ("a<ScRiPt\n>b</sCrIpT\nx>c", "a\nc", "a\nc"),
        ("a<style>b</styles></style >c", "ac", "ac"),
        ("a<script src=x />b", "ab", "ab"),
        ("a<script>never closed <b>", "a", "a"),
        ("a<!-- b --!>c<!-->d<!--->e<!-- \n f", "acde\n", "acde\n"),
        ("Vec<String>", "Vec&lt;String>", "Vec"),
        (
            "<https://example.com> <a@b.c> <1@b.c>",
            "&lt;https://example.com> &lt;a@b.c> &lt;1@b.c>",
            "&lt;https://example.com> &lt;a@b.c> &lt;1@b.c>",
        ),
        ("a <", "a &lt;", "a &lt;"),
        ("a<<b>c</b>", "a&lt;<b>c</b>", "a&lt;<b>c</b>"),
        ("</ x></>", "&lt;/ x>&lt;/>", "&lt;/ x>&lt;/>"),
        ("<\0script><\u{1}b>", "&lt;\0script>&lt;\u{1}b>", "&lt;\0script>&lt;\u{1}b>"),
        ("<img title=\"a>b\" src=x>c", "&lt;img title=\"a>b\" src=x>c", "c"),
        ("<img title=\"a", "&lt;img title=\"a", "&lt;img title=\"a"),
        ("<b", "&lt;b", "&lt;b"),
    ] {
        assert_eq!(sanitize_both(text), [escaped, stripped], "{text:?}");
    }
}

#[test]
fn what_has_no_attributes_is_no_tag() {
    // R-89
    for (text, expected) in [
        ("若 a<b 且 c>d，则成立", "若 a&lt;b 且 c>d，则成立"),
        ("a<b && c>d", "a&lt;b && c>d"),
        ("a<b = c>d <b>e</b>", "a&lt;b = c>d <b>e</b>"),
        ("p<s x=\"1\"y=\"2\">q", "p&lt;s x=\"1\"y=\"2\">q"),
        ("a<br 且 c>d", "a&lt;br 且 c>d"),
        ("a</b 且 c>d", "a&lt;/b 且 c>d"),
        ("a<x且y>b", "a&lt;x且y>b"),
        ("a<script 且>b</script>c", "ac"),
    ] {
        assert_eq!(sanitize_both(text), [expected, expected], "{text:?}");
    }
    assert_eq!(finding_lines("a<b 且 c>d"), ["1:2 html_escaped: `<b 且 c>` does not begin a tag"]);
}

#[test]
fn attributes_go_and_the_tag_stays() {
    // F-104
    for (text, expected) in [
        ("<b onclick=\"x\">a</b>", "<b>a</b>"),
        ("<b/onclick=x>a</b>", "<b>a</b>"),
        ("<br class=x>", "<br>"),
        ("<b style=\"color:red\">a</b>", "<b>a</b>"),
        (
            "<span class=x style='color:red' id=y style='color:blue'>a</span x>",
            "<span style=\"color:red\">a</span>",
        ),
        ("<span style=color:red>a</span>", "<span style=\"color:red\">a</span>"),
        ("<span\nstyle = \"color:red\"\n>a</span>", "<span style=\"color:red\">\na</span>"),
        ("<span style='color\n:\tred; x:y'>a</span>", "<span style=\"color : red\">\na</span>"),
        ("<span a=\"'>\" style=\"color:red\">a</span>", "<span style=\"color:red\">a</span>"),
    ] {
        assert_eq!(sanitize_both(text), [expected, expected], "{text:?}");
    }
    assert_eq!(
        finding_lines("x\n<b onclick=y id=z>a</b>"),
        ["2:1 html_attribute: `onclick` of `b`", "2:1 html_attribute: `id` of `b`",]
    );
}

#[test]
fn elements_are_balanced() {
    // F-104
    for (text, expected) in [
        ("<b>a", "<b>a</b>"),
        ("<b><i>a", "<b><i>a</i></b>"),
        ("<b><i>a</b>c</i>", "<b><i>a</i></b>c"),
        ("a</b></br></span>", "a"),
        ("<b/>a<span />", "a"),
        ("<ruby>漢<rt>kan</ruby>", "<ruby>漢<rt>kan</rt></ruby>"),
        ("<ruby>漢<rp>(<rt>kan<rp>)</ruby>", "<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>"),
        ("<b>a\n```\ncode", "<b>a\n```\ncode"),
    ] {
        assert_eq!(sanitize_both(text), [expected, expected], "{text:?}");
        assert!(
            finding_lines(text).iter().all(|line| line.contains("html_unbalanced"))
                && !finding_lines(text).is_empty()
        );
    }
    let deep = "<b>".repeat(100);
    let result = escape_html(&deep);
    assert_eq!((result.matches("<b>").count(), result.matches("</b>").count()), (64, 64));
    assert_eq!(result.matches("&lt;b>").count(), 36); // F-222
}

#[test]
fn what_is_taken_out_joins_nothing() {
    // F-104
    for (text, expected) in [
        ("<scr<script>x</script>ipt>", "&lt;script>"),
        ("<<!-- -->script>", "&lt;script>"),
        ("<scr<!-- -->ipt>", "&lt;script>"),
        ("<<x>script>", "&lt;script>"),
        ("<b <x>onclick=y>", "&lt;b onclick=y>"),
        ("``<!-- -->`<img src=x>`", "`` `<img src=x>`"),
    ] {
        assert_eq!(sanitize(text, HtmlMode::Strip).0, expected, "{text:?}");
    }
    assert_eq!(escape_html("<scr<script>ipt>"), "&lt;scr");
}

#[test]
fn forbidden_markup_is_told_with_name_and_place() {
    // F-236
    assert_eq!(
        finding_lines(
            "中 <div>\n<b class=x>a</b><!-- c -->\n<span style=\"color:red;top:0\">s</span></i> <script>x</script> <1@"
        ),
        [
            "1:3 html_forbidden: `div`",
            "2:1 html_attribute: `class` of `b`",
            "2:17 html_comment: a comment",
            "3:1 html_style: `top:0` in a style",
            "3:39 html_unbalanced: `</i>` closes nothing",
            "3:44 html_forbidden: `script`",
            "3:63 html_escaped: `<1` does not begin a tag",
        ]
    );
    let reports = sanitize("ab<i><div x>", HtmlMode::Strip).1;
    let places: Vec<_> =
        reports.iter().map(|report| (report.rule.code, report.place.offset, report.end)).collect();
    assert_eq!(places, [("html_forbidden", 5, 12), ("html_unbalanced", 2, 5)]);
    assert_eq!(reports[0].repair.as_deref(), Some("removed"));
}

#[test]
fn no_more_is_held_than_a_tag_or_a_line() {
    // F-221
    let limits = Limits::default();
    for text in [
        "<b title=\"".to_owned() + &"x".repeat(5000),
        "`<b>".to_owned() + &"<x".repeat(5000),
        "<".repeat(5000),
    ] {
        let mut sanitizer = HtmlSanitizer::new(HtmlMode::Escape, &limits);
        let (mut text_count, mut max_held) = (0, 0);
        for (at, _) in text.char_indices() {
            sanitizer.push(&text[at..=at], &mut |piece| {
                text_count += matches!(piece, SanitizedPiece::Text(_)) as usize
            });
            max_held = max_held.max(sanitizer.held_bytes());
        }
        assert!(max_held <= limits.tag.max(limits.line), "{max_held}");
        assert!(text_count > 0);
    }
}

#[test]
fn a_megabyte_of_anything_is_read() {
    // F-222: quadratic work would not end in time.
    for piece in [
        "<", "<!--", "<!", "<b ", "<b>", "</b>", "<b x=\"", "`<", "`<b>", "``<b>`", "<script>", "</script",
        "<a ` ", "[a](`<b>",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        for mode in [HtmlMode::Escape, HtmlMode::Strip] {
            let (result, reports) = sanitize(&text, mode);
            assert!(result.len() <= 5 * text.len(), "{piece}");
            assert!(!reports.is_empty(), "{piece}");
        }
    }
}
