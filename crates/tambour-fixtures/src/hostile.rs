//! Input made to be expensive: one pattern over and over, in every place where a reader could wait for its end.

use tambour::event::Sink;
use tambour::{End, Event, Finding, Options, Pipeline};

/// Patterns that begin something and do not end it.
pub const PATTERNS: &[&str] = &[
    "<",
    "</",
    "<a",
    "<a ",
    "<a \"",
    "<a b=\"",
    "<a b='x' ",
    "<!",
    "<!-",
    "<!--",
    "<!-- -",
    "-->",
    "&",
    "&lt;",
    "&#",
    "[",
    "{",
    "{\"a\":",
    "[{\"a\":[",
    "\"",
    "\\",
    "\\u00",
    "\\n",
    "'",
    "`",
    "``",
    "` `` ``` ",
    "```\n",
    "~~~\n",
    "`<b>",
    "<b>",
    "<b>\n",
    " ",
    "\n",
    " \n",
    "\t\t\t",
    "\u{3000}",
    ">",
    "> ",
    "<think>",
    "</think>",
    "<serp>",
    "<thinking>",
    "</thinking>",
    "<thinking><phase id=\"1\"><title>",
    "<phase id=\"1\">",
    "</phase>",
    "<title>",
    "<title>t</title>",
    "<final>",
    "</final>",
    "<final></final>",
    "<!-- <serp_queries>\n",
    "<!-- <serp_queries>\n[]\n</serp_queries> -->\n",
    "<serp_queries>",
    "<<",
    "<<ParsingError",
    "<<ParsingError>>",
    "{\"event\":\"final_delta\",\"data\":{\"text\":\"a\"}}\n",
    "{\"event\":\"phase_start\"",
    "{\"event\":",
    "event: final_delta\n",
    "data: {\n",
    "\u{FEFF}",
    "中",
    "😀",
    "a",
    "a ",
    "a\n",
    "1",
    "-",
    ",",
    ":",
    "}",
    "]",
];

/// What the pattern stands in.
pub const PLACES: &[&str] = &[
    "",
    "text ",
    "<think>",
    "<serp>",
    "<thinking>",
    "<thinking><phase id=\"1\"><title>",
    "<thinking><phase id=\"1\"><title>t</title>a ",
    "<thinking><phase id=\"1\"><title>t</title>a <final>",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\na ",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\na `",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\n```\n",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\na <!-- <serp_queries>\n[\"",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\na <!-- <serp_queries>\n[]\n</serp_queries>",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\na <!--",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\na</final>",
    "```xml\n",
    "{\"event\":\"final_delta\",\"data\":{\"text\":\"",
    "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"final_delta\",\"data\":{\"text\":\"",
    "{\"event\":\"serp_queries\",\"data\":{\"queries\":[",
    "event: final_delta\ndata: {\"text\": \"",
    "{\"thought\":\"t\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"",
    "{\"thought\":\"t\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,\"tool_calls\":[",
    "{\"direct_response\":\"",
];

/// Those of [`PATTERNS`] that differ in kind, and those of [`PLACES`], for counts that are dear.
pub const FEW: (&[&str], &[usize]) = (
    &[
        "<",
        "</",
        "<a \"",
        "<a b='x' ",
        "<!",
        "<!--",
        "-->",
        "&",
        "[",
        "{\"a\":",
        "\"",
        "\\",
        "\\n",
        "`",
        "` `` ``` ",
        "```\n",
        "`<b>",
        "<b>\n",
        " ",
        "\n",
        "\u{3000}",
        "> ",
        "<think>",
        "</thinking>",
        "<thinking><phase id=\"1\"><title>",
        "<title>t</title>",
        "<final>",
        "</final>",
        "<!-- <serp_queries>\n[]\n</serp_queries> -->\n",
        "<<ParsingError",
        "{\"event\":\"final_delta\",\"data\":{\"text\":\"a\"}}\n",
        "event: final_delta\n",
        "中",
        "a\n",
        ",",
    ],
    &[0, 2, 6, 7, 8, 9, 11, 12, 13, 16, 18, 20, 21],
);

/// A reply of about `size` bytes: `place`, then `pattern` over and over.
#[must_use]
pub fn input(place: &str, pattern: &str, size: usize) -> String {
    let times = size.saturating_sub(place.len()) / pattern.len();
    let mut input = String::with_capacity(size);
    input.push_str(place);
    (0..times).for_each(|_| input.push_str(pattern));
    input
}

/// Reads an input in chunks and keeps nothing. What `limits.hold` bounds grows with the input here, so that its cost
/// shows.
///
/// # Panics
/// There is no such dialect.
pub fn read(dialect: &str, input: &[u8], chunk: usize) {
    let mut options = Options::default();
    options.limits.hold = 1 << 30;
    let mut pipeline = Pipeline::new(dialect, &options).expect("it is in the table");
    input.chunks(chunk).for_each(|chunk| pipeline.push(chunk, &mut Nothing));
    pipeline.finish(&End::stop(), &mut Nothing);
}

struct Nothing;

impl Sink for Nothing {
    fn event(&mut self, _: Event<'_>) {}

    fn finding(&mut self, _: Finding) {}
}
