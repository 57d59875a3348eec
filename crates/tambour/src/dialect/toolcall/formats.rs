//! Table of the written forms of calls: the opening mark, the text before the arguments, their notation, and
//! the closing mark. Each model family has a format of one or more forms; one parser reads them all.

use self::Body::*;
use self::Format::*;
use self::Step::*;
use super::arguments::Marks;

/// Family of models with the same notation for calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Hermes,
    Qwen3Coder,
    Llama,
    Mistral,
    DeepSeek,
    Kimi,
    Glm,
    Harmony,
    MiniMax,
}

impl Format {
    /// All formats, in the order of the option's values.
    pub(super) const ALL: [Format; 9] =
        [Hermes, Qwen3Coder, Llama, Mistral, DeepSeek, Kimi, Glm, Harmony, MiniMax];
}

/// Step between the opening mark of a form and its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Optional white space.
    Space,
    /// This text.
    Text(&'static str),
    /// This text, or nothing.
    Maybe(&'static str),
    /// One of these texts.
    Any(&'static [&'static str]),
    /// The name of the tool.
    Name,
    /// The id of the call; it is not used, as calls are numbered by the policy.
    Id,
    /// The arguments begin here, although the following steps must match too.
    Here,
    /// One of these texts comes next; it belongs to the arguments.
    Next(&'static [&'static str]),
}

/// Notation of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// A JSON object of name and arguments, or a list of them.
    Calls,
    /// A JSON object.
    Args,
    /// A sequence of `<parameter=KEY>value</parameter>`.
    Parameters,
    /// A sequence of `<arg_key>KEY</arg_key><arg_value>value</arg_value>`.
    Pairs,
    /// Calls as elements; names of tools and parameters are in an attribute.
    Elements(&'static Invokes),
    /// A call in Python syntax, or a list of them.
    Python,
    /// None: the mark belongs to the structure around calls and texts.
    Nothing,
    /// Reasoning.
    Reasoning,
}

impl Body {
    /// Returns true if arguments are values between marks.
    pub(super) fn has_values(self) -> bool {
        matches!(self, Parameters | Pairs | Elements(_))
    }
}

/// Marks of calls written as elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invokes {
    /// Text before the name of a tool, and the end of the call.
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// Marks of its parameters; the opening one ends before the name.
    pub(super) values: Marks,
    /// Set if a parameter states whether its value is a string, so that white space in it is significant.
    pub(super) typed: bool,
}

/// `<｜DSML｜invoke name="f"><｜DSML｜parameter name="key" string="true">value</｜DSML｜parameter></｜DSML｜invoke>`.
pub(super) static DSML: Invokes = Invokes {
    open: "<｜DSML｜invoke name=\"",
    close: "</｜DSML｜invoke>",
    values: Marks {
        open: "<｜DSML｜parameter name=\"",
        close: "</｜DSML｜parameter>",
        follow: &["<｜DSML｜parameter name=\"", "</｜DSML｜invoke>"],
        others: &[
            "</｜DSML｜invoke>",
            "<｜DSML｜invoke name=\"",
            "<｜DSML｜function_calls>",
            "</｜DSML｜function_calls>",
        ],
    },
    typed: true,
};

/// `<invoke name="f"><parameter name="key">value</parameter></invoke>`.
pub(super) static INVOKE: Invokes = Invokes {
    open: "<invoke name=\"",
    close: "</invoke>",
    values: Marks {
        open: "<parameter name=\"",
        close: "</parameter>",
        follow: &["<parameter name=\"", "</invoke>"],
        others: &["</invoke>", "<invoke name=\"", "<minimax:tool_call>", "</minimax:tool_call>"],
    },
    typed: false,
};

/// One written form of a call.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) format: Format,
    /// The opening mark; empty for a form that is allowed only at the beginning of a reply.
    pub(super) open: &'static str,
    pub(super) head: &'static [Step],
    pub(super) body: Body,
    /// Closing marks, in order. All but the last are optional.
    pub(super) close: &'static [&'static str],
    /// Set if the last closing mark is optional too, because servers remove it or the form has none.
    pub(super) open_ended: bool,
    /// Set if a semicolon can join another call to it.
    pub(super) joined: bool,
    /// Set if the mark has a meaning only once the format is known.
    pub(super) known: bool,
}

const FORM: Form = Form {
    format: Hermes,
    open: "",
    head: &[],
    body: Nothing,
    close: &[],
    open_ended: false,
    joined: false,
    known: false,
};

/// Returns a mark of the structure around calls.
const fn structure(format: Format, open: &'static str, known: bool) -> Form {
    Form { format, open, known, ..FORM }
}

/// Returns a mark inside calls of a known format; outside a call it begins nothing.
const fn inner(format: Format, open: &'static str) -> Form {
    Form { format, open, head: &[Any(&[])], known: true, ..FORM }
}

const CALL: &str = "<tool_call>";
const CALL_END: &[&str] = &["</tool_call>"];
const OBJECT: Step = Next(&["{"]);
/// Possible first keys of an object that is a call.
const KEYS: &[&str] = &["name\"", "type\"", "function\"", "parameters\"", "arguments\""];
const SEP: &str = "<｜tool▁sep｜>";
const DEEPSEEK: &str = "<｜tool▁call▁begin｜>";
const DEEPSEEK_END: &[&str] = &["```", "<｜tool▁call▁end｜>"];
const CHANNELS: &[&str] = &["commentary", "analysis", "final"];
const MESSAGE: Step = Text("<|message|>");
const CONSTRAIN: Step = Maybe("<|constrain|>");
const JSON: Step = Maybe("json");
const STARTED: &str = "<|start|>assistant";
const CHANNEL: &str = "<|channel|>";
/// Recipient of the call, after the channel.
const CHANNEL_TO: &[Step] =
    &[Any(CHANNELS), Space, Text("to="), Name, Space, CONSTRAIN, JSON, Space, MESSAGE, Space, OBJECT];
const HARMONY_END: &[&str] = &["<|call|>"];

/// Table of the forms. The first one that matches is used.
pub(super) static FORMS: &[Form] = &[
    Form { open: CALL, head: &[Space, Next(&["{", "["])], body: Calls, close: CALL_END, ..FORM },
    Form {
        format: Qwen3Coder,
        open: CALL,
        head: &[Space, Text("<function="), Name, Text(">")],
        body: Parameters,
        close: CALL_END,
        ..FORM
    },
    // Llama writes JSON into this element.
    Form {
        format: Llama,
        open: "<function=",
        head: &[Name, Text(">"), Space, OBJECT],
        body: Args,
        close: &["</function>"],
        ..FORM
    },
    // The template also has calls without the outer mark.
    Form {
        format: Qwen3Coder,
        open: "<function=",
        head: &[Name, Text(">")],
        body: Parameters,
        close: &["</function>"],
        ..FORM
    },
    Form {
        format: Glm,
        open: CALL,
        head: &[Space, Name, Space, Next(&["<arg_key>", "</tool_call>"])],
        body: Pairs,
        close: CALL_END,
        ..FORM
    },
    Form {
        format: Llama,
        open: "<|python_tag|>",
        head: &[Space, OBJECT],
        body: Calls,
        open_ended: true,
        joined: true,
        ..FORM
    },
    Form {
        format: Llama,
        open: "<|python_tag|>",
        head: &[Space, Here, Name, Next(&["("])],
        body: Python,
        open_ended: true,
        ..FORM
    },
    Form {
        format: Llama,
        open: "<|python_start|>",
        head: &[Space, Here, Text("["), Space, Name, Space, Next(&["("])],
        body: Python,
        close: &["<|python_end|>"],
        open_ended: true,
        ..FORM
    },
    Form {
        format: Llama,
        head: &[Here, Text("{"), Space, Text("\""), Next(KEYS)],
        body: Calls,
        open_ended: true,
        joined: true,
        ..FORM
    },
    Form {
        format: Llama,
        head: &[Here, Text("["), Space, Name, Space, Next(&["("])],
        body: Python,
        open_ended: true,
        ..FORM
    },
    Form {
        format: Mistral,
        open: "[TOOL_CALLS]",
        head: &[Space, Next(&["[", "{"])],
        body: Calls,
        open_ended: true,
        ..FORM
    },
    Form {
        format: Mistral,
        open: "[TOOL_CALLS]",
        head: &[Space, Name, Maybe("[ARGS]"), Space, OBJECT],
        body: Args,
        open_ended: true,
        ..FORM
    },
    Form {
        format: Mistral,
        open: "[TOOL_CALLS]",
        head: &[Space, Name, Text("[CALL_ID]"), Id, Maybe("[ARGS]"), Space, OBJECT],
        body: Args,
        open_ended: true,
        ..FORM
    },
    // V3 and R1 write the kind first and put the arguments into a fence; V3.1 does neither.
    Form {
        format: DeepSeek,
        open: DEEPSEEK,
        head: &[Text("function"), Text(SEP), Name, Space, Maybe("```json"), Space, OBJECT],
        body: Args,
        close: DEEPSEEK_END,
        ..FORM
    },
    Form {
        format: DeepSeek,
        open: DEEPSEEK,
        head: &[Name, Text(SEP), Space, OBJECT],
        body: Args,
        close: DEEPSEEK_END,
        ..FORM
    },
    // V3.2 writes calls as elements.
    Form {
        format: DeepSeek,
        open: "<｜DSML｜function_calls>",
        head: &[Space, Here, Text("<｜DSML｜invoke name=\""), Name, Text("\">")],
        body: Elements(&DSML),
        close: &["</｜DSML｜function_calls>"],
        ..FORM
    },
    Form {
        format: MiniMax,
        open: "<minimax:tool_call>",
        head: &[Space, Here, Text("<invoke name=\""), Name, Text("\">")],
        body: Elements(&INVOKE),
        close: &["</minimax:tool_call>"],
        ..FORM
    },
    structure(DeepSeek, "<｜tool▁calls▁begin｜>", false),
    structure(DeepSeek, "<｜tool▁calls▁end｜>", false),
    Form {
        format: Kimi,
        open: "<|tool_call_begin|>",
        head: &[Space, Name, Space, Text("<|tool_call_argument_begin|>"), Space, OBJECT],
        body: Args,
        close: &["<|tool_call_end|>"],
        ..FORM
    },
    structure(Kimi, "<|tool_calls_section_begin|>", false),
    structure(Kimi, "<|tool_calls_section_end|>", false),
    structure(Kimi, "<|tool_call_section_begin|>", false),
    structure(Kimi, "<|tool_call_section_end|>", false),
    Form {
        format: Harmony,
        open: CHANNEL,
        head: CHANNEL_TO,
        body: Args,
        close: HARMONY_END,
        open_ended: true,
        ..FORM
    },
    Form {
        format: Harmony,
        open: STARTED,
        head: &[
            Text(CHANNEL),
            Any(CHANNELS),
            Space,
            Text("to="),
            Name,
            Space,
            CONSTRAIN,
            JSON,
            Space,
            MESSAGE,
            Space,
            OBJECT,
        ],
        body: Args,
        close: HARMONY_END,
        open_ended: true,
        ..FORM
    },
    Form {
        format: Harmony,
        open: STARTED,
        head: &[
            Space,
            Text("to="),
            Name,
            Space,
            Text(CHANNEL),
            Any(CHANNELS),
            Space,
            CONSTRAIN,
            JSON,
            Space,
            MESSAGE,
            Space,
            OBJECT,
        ],
        body: Args,
        close: HARMONY_END,
        open_ended: true,
        ..FORM
    },
    Form {
        format: Harmony,
        open: CHANNEL,
        head: &[Any(&["analysis"]), Space, MESSAGE],
        body: Reasoning,
        ..FORM
    },
    Form {
        format: Harmony,
        open: STARTED,
        head: &[Text(CHANNEL), Any(&["analysis"]), Space, MESSAGE],
        body: Reasoning,
        ..FORM
    },
    Form { format: Harmony, open: CHANNEL, head: &[Any(CHANNELS), Space, MESSAGE], ..FORM },
    Form { format: Harmony, open: STARTED, head: &[Text(CHANNEL), Any(CHANNELS), Space, MESSAGE], ..FORM },
    structure(Harmony, "<|end|>", true),
    structure(Harmony, "<|return|>", true),
    structure(Harmony, "<|call|>", true),
    inner(Qwen3Coder, "<parameter="),
    inner(Glm, "<arg_key>"),
    inner(Glm, "<arg_value>"),
];

/// Returns the tool's name without the additions of a family: a namespace before it or a number after it.
pub(super) fn name(written: &str, format: Format, body: Body) -> &str {
    match format {
        Harmony | Kimi => {
            let name = written.strip_prefix("functions.").unwrap_or(written);
            match name.rsplit_once(':') {
                Some((name, number)) if format == Kimi && number.bytes().all(|b| b.is_ascii_digit()) => name,
                _ => name,
            }
        }
        Llama if body == Python => written.strip_suffix(".call").unwrap_or(written),
        _ => written,
    }
}
