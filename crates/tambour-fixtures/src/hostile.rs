//! Expensive input: one pattern is repeated in every place where a reader could wait for its end, and after
//! long prefixes that a reader might scan again for each repetition.

use std::fmt;

use tambour::event::Sink;
use tambour::{Event, InputEnd, Options, Pipeline};

/// Shape of an input of any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostileShape {
    /// Beginning of the input.
    pub beginning: &'static str,
    /// Piece repeated up to half of the size, and the text that ends the repetition.
    pub prefix: Option<(&'static str, &'static str)>,
    /// Piece repeated up to the end.
    pub pattern: &'static str,
}

impl HostileShape {
    /// Builds an input of about `size` bytes.
    #[must_use]
    pub fn build_input(&self, size: usize) -> String {
        let mut input = String::with_capacity(size + 64);
        input.push_str(self.beginning);
        if let Some((piece, end)) = self.prefix {
            append_repeated(&mut input, piece, size / 2);
            input.push_str(end);
        }
        append_repeated(&mut input, self.pattern, size);
        input
    }
}

/// Replies that are read before a measurement, so that building lazy parts, such as the schema of a tool,
/// does not count as work.
pub const WARM_UP: &[&str] = &[
    "{\"thought\": <",
    "{\"thought\":\"t\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,\"tool_calls\":[{\"name\":\"lintSRSDocument\",\"args\":\"[\"}]}",
];

/// Appends `piece` until the input has about `size` bytes.
fn append_repeated(input: &mut String, piece: &str, size: usize) {
    let repetitions = size.saturating_sub(input.len()) / piece.len();
    (0..repetitions).for_each(|_| input.push_str(piece));
}

impl fmt::Display for HostileShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} after {:?}", self.pattern, self.beginning)?;
        match self.prefix {
            Some((piece, end)) => write!(f, ", {piece:?} over and over, {end:?}"),
            None => Ok(()),
        }
    }
}

/// Lists all shapes.
#[must_use]
pub fn all_shapes() -> Vec<HostileShape> {
    let mut shapes = plain_shapes(PATTERNS, BEGINNINGS);
    shapes.extend(paired_shapes(PREFIXES, REPEATED));
    shapes
}

/// Lists a representative selection, for slow measurements.
#[must_use]
pub fn few_shapes() -> Vec<HostileShape> {
    let beginnings: Vec<&str> = FEW_BEGINNINGS.iter().map(|&index| BEGINNINGS[index]).collect();
    let mut shapes = plain_shapes(FEW_PATTERNS, &beginnings);
    shapes.extend(prefixed_shapes());
    shapes
}

/// Lists the shapes of [`few_shapes`] that concern a dialect: those without a beginning, with a beginning that
/// concerns all dialects, with a beginning in the format of the dialect, or with a long prefix. All shapes
/// concern `auto`.
#[must_use]
pub fn few_shapes_of(dialect: &str) -> Vec<HostileShape> {
    let mut shapes = few_shapes();
    shapes.retain(|shape| {
        // Nothing, `<think>`, the answer of a `thinkingml` reply, a `jsonseq` event.
        let is_common = ["", BEGINNINGS[2], BEGINNINGS[8], BEGINNINGS[16]].contains(&shape.beginning);
        let own_dialect = match shape.beginning {
            beginning if beginning.starts_with("<thinking>") => "thinkingml",
            beginning if beginning.starts_with("{\"event\"") => "jsonseq",
            _ => "aiplan",
        };
        shape.prefix.is_some() || is_common || dialect == own_dialect || dialect == "auto"
    });
    shapes
}

/// Lists the patterns of [`few_shapes`] at only three beginnings (none, in `<final>`, in a `final_delta`) and
/// all its prefixed shapes, for very slow measurements.
#[must_use]
pub fn fewest_shapes() -> Vec<HostileShape> {
    let mut shapes = plain_shapes(FEW_PATTERNS, &["", BEGINNINGS[8], BEGINNINGS[16]]);
    shapes.extend(prefixed_shapes());
    shapes
}

/// Lists the shapes of [`PAIRS`].
fn prefixed_shapes() -> Vec<HostileShape> {
    PAIRS.iter().flat_map(|&(prefix, patterns)| paired_shapes(&PREFIXES[prefix..=prefix], patterns)).collect()
}

/// Lists the shapes of every pattern after every beginning.
fn plain_shapes(patterns: &[&'static str], beginnings: &[&'static str]) -> Vec<HostileShape> {
    let shapes_at = |&beginning: &&'static str| {
        patterns.iter().map(move |pattern| HostileShape { beginning, prefix: None, pattern })
    };
    beginnings.iter().flat_map(shapes_at).collect()
}

/// Lists the shapes of every pattern after every long prefix.
fn paired_shapes(prefixes: &[HostilePrefix], patterns: &[&'static str]) -> Vec<HostileShape> {
    let shapes_of = |&(beginning, piece, end): &HostilePrefix| {
        patterns.iter().map(move |pattern| HostileShape { beginning, prefix: Some((piece, end)), pattern })
    };
    prefixes.iter().flat_map(shapes_of).collect()
}

/// Beginning of the input, repeated piece, and text that ends the repetition.
type HostilePrefix = (&'static str, &'static str, &'static str);

/// Long prefixes that a reader may hold and scan again.
const PREFIXES: &[HostilePrefix] = &[
    ("", "`", " a b"),
    ("", " ", "a"),
    ("", "<", "a"),
    ("", "\"", ""),
    ("", "a ", "\n"),
    ("<think>", "a ", ""),
    ("<thinking><phase id=\"1\"><title>t</title>", "\n", "a"),
    ("<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\n", "`", " a b"),
    ("<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\na", "\n", ""),
    (
        "{\"event\":\"thinking_start\",\"data\":{}}\n{\"event\":\"final_delta\",\"data\":{\"text\":\"",
        "\\n",
        "",
    ),
    ("{\"event\":\"thinking_start\",\"data\":{}}\n", " ", "["),
    ("{\"thought\":\"t\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"", "\\n", ""),
    (
        "{\"thought\":\"t\",\"response_mode\":\"TOOL_EXECUTION\",\"direct_response\":null,\"tool_calls\":[{\"name\":\"lintSRSDocument\",\"args\":\"",
        " ",
        "[",
    ),
    ("{\"thought\":\"t\",\"tool_calls\":[", "{\"name\":\"a\"},", ""),
    ("{\"response\":{\"咨询师\":\"", "\\n", ""),
    ("{\"a\":\"", "\\\"", "\"}"),
];

/// Pieces repeated after the prefixes.
const REPEATED: &[&str] = &[
    "<think></think>",
    "<think>a</think>b",
    "</think>",
    "<!-- a -->",
    "<b>",
    "`a` ",
    "`",
    "```\n",
    "a\n",
    "{}",
    "{},",
    "\"a\",",
    "\\n",
    "\\na",
    "{\"thought\":\"t\"}\n",
    "{\"event\":\"final_delta\",\"data\":{\"text\":\"a\"}}\n",
    "<!-- <serp_queries>\n[]\n</serp_queries> -->\n",
    "<final>",
    " <<",
];

/// Pairs that [`few_shapes`] uses: the index of a prefix, and pieces repeated after it.
const PAIRS: &[(usize, &[&str])] = &[
    (0, &["<think></think>", "`a` ", "{}"]),
    (1, &["<think></think>", "<!-- a -->", "a\n"]),
    (2, &["<b>", " <<"]),
    (3, &["\"a\",", "{}"]),
    (4, &["<think></think>", "{}", "{\"thought\":\"t\"}\n"]),
    (5, &["</think>", "<!-- a -->"]),
    (6, &["<final>", "<b>"]),
    (7, &["<think></think>", "<!-- <serp_queries>\n[]\n</serp_queries> -->\n", "`a` "]),
    (8, &["<!-- <serp_queries>\n[]\n</serp_queries> -->\n", "<b>"]),
    (9, &["\\na", "<think></think>"]),
    (10, &["{},", "{\"event\":\"final_delta\",\"data\":{\"text\":\"a\"}}\n"]),
    (11, &["\\n", "\\na", "`a` "]),
    (12, &["{},"]),
    (13, &["{},", "\"a\","]),
    (14, &["\\na", "<think></think>"]),
    (15, &["{}", "{\"thought\":\"t\"}\n"]),
];

/// Pieces of markup, JSON and plain text; most leave a structure open when they are repeated.
const PATTERNS: &[&str] = &[
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

/// Texts before the pattern.
const BEGINNINGS: &[&str] = &[
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

/// One pattern of each kind, from [`PATTERNS`].
const FEW_PATTERNS: &[&str] = &[
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
];

/// Indices in [`BEGINNINGS`] that [`few_shapes`] uses.
const FEW_BEGINNINGS: &[usize] = &[0, 2, 6, 7, 8, 9, 11, 12, 13, 16, 18, 20, 21];

/// Reads an input in chunks of `chunk_size` bytes and discards the events. `limits.hold` is raised to 1 GiB
/// so that it never caps the cost of held text.
///
/// # Panics
/// The dialect does not exist.
pub fn read_hostile(dialect: &str, input: &[u8], chunk_size: usize) {
    let mut options = Options::default();
    options.limits.hold = 1 << 30;
    let mut pipeline = Pipeline::new(dialect, &options).expect("the dialect is known");
    input.chunks(chunk_size).for_each(|chunk| pipeline.push(chunk, &mut DiscardSink));
    pipeline.finish(&InputEnd::stop(), &mut DiscardSink);
}

/// Sink that discards all events.
struct DiscardSink;

impl Sink for DiscardSink {
    fn event(&mut self, _: Event<'_>) {}
}
