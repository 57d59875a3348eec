//! Values of styles.

use super::{escape_html, finding_lines};

fn sanitized_style(style: &str) -> String {
    let result = escape_html(&format!("<span style=\"{style}\">a</span>"));
    let attributes =
        result.strip_prefix("<span").and_then(|rest| rest.strip_suffix(">a</span>")).expect("a span");
    attributes
        .strip_prefix(" style=\"")
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn values_of_the_grammar_stay() {
    // F-104
    for value in [
        "color:red",
        "COLOR: RebeccaPurple",
        "color:currentColor",
        "background-color:transparent",
        "color:#fff",
        "color:#ffff",
        "color:#A0b1C2",
        "color:#a0b1c2d3",
        "color:rgb(1,2,3)",
        "color:rgb(10%, 20%,30%)",
        "color:rgba(1, 2, 3, .5)",
        "color:rgba(1,2,3,50%)",
        "color:rgb(1 2 3)",
        "color:rgb(1 2 3 / 50%)",
        "color:rgb(1 2 3/0.5)",
        "color:rgb(none 2% 3)",
        "color:hsl(120,50%,50%)",
        "color:hsla(120deg, 50%, 50%, 1)",
        "color:hsl(0.5turn 50% 50%)",
        "color:hsl(1 50 50 / none)",
        "color:rgb(-1, +2, 3.5)",
        "font-weight:bold",
        "font-weight:lighter",
        "font-weight:1",
        "font-weight:1000",
        "font-style:italic",
        "font-style:oblique 14deg",
        "font-style:oblique -90deg",
        "text-decoration:underline",
        "text-decoration:none",
        "text-decoration:underline overline line-through",
        "text-decoration:underline dotted red",
        "text-decoration:rgb(1 2 3) wavy line-through",
        "color:red;font-weight:bold",
        " color : red ; ",
    ] {
        assert_eq!(sanitized_style(value), value);
    }
}

#[test]
fn other_values_go() {
    // F-104
    for value in [
        "color:url(x)",
        "color:expression(alert(1))",
        "color:javascript:x",
        "color:r\\65d",
        "color:re/**/d",
        "color:red/*",
        "color:var(--x)",
        "color:attr(x)",
        "color:calc(1)",
        "color:rgb(1,2)",
        "color:rgb(1,2,3,4,5)",
        "color:rgb(1,2%,3)",
        "color:rgb(1 2,3)",
        "color:rgb(1 2 3 4)",
        "color:rgb(1 2 3 / 4 / 5)",
        "color:rgb(rgb(1,2,3),2,3)",
        "color:rgb(1,2,3))",
        "color:rgb (1,2,3)",
        "color:hsl(50%,50%,50%)",
        "color:hsl(1,2,3)",
        "color:hwb(1 2 3)",
        "color:#ff",
        "color:#ggg",
        "color:#fffff",
        "color:redd",
        "color:red blue",
        "color:",
        "color",
        "color:&#114;ed",
        "color:'red'",
        "color:red}b{x:y",
        "background:red",
        "background-color:url(javascript:x)",
        "background-image:url(x)",
        "position:fixed",
        "--x:red",
        "font-weight:0",
        "font-weight:1001",
        "font-weight:bold bold",
        "font-weight:1e2",
        "font-style:oblique 91deg",
        "font-style:oblique 1",
        "text-decoration:underline underline",
        "text-decoration:none underline",
        "text-decoration:red blue",
        "text-decoration:blink",
        "text-decoration:underline 3px",
        "font-weight:NaN",
        "font-weight:inf",
        "color:1",
        "color:rgb(1e3,2,3)",
        "color:rgb(,,)",
        "color:rgb()",
        "color:\u{ff52}ed",
    ] {
        assert_eq!(sanitized_style(value), "", "{value}");
        assert!(finding_lines(&format!("<span style=\"{value}\">a</span>"))[0].contains("html_style"));
    }
    assert_eq!(sanitized_style("color:red;position:fixed;font-weight:bold"), "color:red; font-weight:bold");
    assert_eq!(
        sanitized_style("color: red !important; font-style:italic ! IMPORTANT"),
        "color: red; font-style:italic"
    );
    assert_eq!(sanitized_style("color: red !x"), "");
    assert_eq!(sanitized_style(&format!("color:rgb({}1,2,3)", "0".repeat(200))), "");
}
