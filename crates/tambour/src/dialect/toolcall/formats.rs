//! Table of the written forms of calls: the opening mark, the text before the arguments, the notation of the
//! arguments, and the closing mark. Each model family has a format of one or more forms; one parser reads
//! them all.

use self::CallBody::*;
use self::CallFormat::*;
use self::FormStep::*;
use super::arguments::ArgumentMarks;

/// Format of calls, named after the family of models that writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallFormat {
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

impl CallFormat {
    /// All formats, in the order of the option's values.
    pub(super) const ALL: [CallFormat; 9] =
        [Hermes, Qwen3Coder, Llama, Mistral, DeepSeek, Kimi, Glm, Harmony, MiniMax];
}

/// Step between the opening mark of a form and its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) enum FormStep {
    /// Optional white space.
    Space,
    /// This text.
    Text(&'static str),
    /// This text, or nothing.
    Optional(&'static str),
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// The name of the tool.
    Name,
    /// The id of the call, which is not used: the policy numbers calls.
    Id,
    /// The arguments begin here; the steps after this one match their beginning.
    ArgumentsStart,
    /// One of these texts must follow; it belongs to the arguments.
    NextIs(&'static [&'static str]),
}

/// Notation of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallBody {
    /// A JSON object of name and arguments, or a list of them.
    CallObjects,
    /// A JSON object.
    ArgsObject,
    /// A sequence of `<parameter=KEY>value</parameter>`.
    Parameters,
    /// A sequence of `<arg_key>KEY</arg_key><arg_value>value</arg_value>`.
    Pairs,
    /// Calls as elements; names of tools and parameters are in an attribute.
    Elements(&'static ElementMarks),
    /// A call in Python syntax, or a list of them.
    Python,
    /// No call: the mark belongs to the structure around calls and texts.
    NoArguments,
    /// No call: reasoning follows.
    Reasoning,
}

impl CallBody {
    /// Returns whether arguments are values between marks.
    pub(super) fn has_values(self) -> bool {
        matches!(self, Parameters | Pairs | Elements(_))
    }
}

/// Marks of calls written as elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ElementMarks {
    /// Mark before the name of a tool.
    pub(super) open: &'static str,
    /// Mark at the end of the call.
    pub(super) close: &'static str,
    /// Marks of the parameters; the opening one ends before the name.
    pub(super) parameter_marks: ArgumentMarks,
    /// Set if a parameter states whether its value is a string, so that white space in it is significant.
    pub(super) is_typed: bool,
}

/// Marks of DeepSeek V3.2: `<｜DSML｜invoke name="f"><｜DSML｜parameter name="key"
/// string="true">value</｜DSML｜parameter></｜DSML｜invoke>`.
pub(super) static DSML: ElementMarks = ElementMarks {
    open: "<｜DSML｜invoke name=\"",
    close: "</｜DSML｜invoke>",
    parameter_marks: ArgumentMarks {
        open: "<｜DSML｜parameter name=\"",
        close: "</｜DSML｜parameter>",
        followers: &["<｜DSML｜parameter name=\"", "</｜DSML｜invoke>"],
        other_marks: &[
            "</｜DSML｜invoke>",
            "<｜DSML｜invoke name=\"",
            "<｜DSML｜function_calls>",
            "</｜DSML｜function_calls>",
        ],
    },
    is_typed: true,
};

/// Marks of MiniMax: `<invoke name="f"><parameter name="key">value</parameter></invoke>`.
pub(super) static INVOKE: ElementMarks = ElementMarks {
    open: "<invoke name=\"",
    close: "</invoke>",
    parameter_marks: ArgumentMarks {
        open: "<parameter name=\"",
        close: "</parameter>",
        followers: &["<parameter name=\"", "</invoke>"],
        other_marks: &["</invoke>", "<invoke name=\"", "<minimax:tool_call>", "</minimax:tool_call>"],
    },
    is_typed: false,
};

/// One written form of a call.
#[derive(Debug)]
pub(super) struct CallForm {
    pub(super) format: CallFormat,
    /// The opening mark; empty for a form that is allowed only at the beginning of a reply.
    pub(super) open_mark: &'static str,
    /// Steps from the opening mark to the arguments.
    pub(super) head: &'static [FormStep],
    /// Notation of the arguments.
    pub(super) body: CallBody,
    /// Closing marks, in order. All but the last are optional.
    pub(super) close_marks: &'static [&'static str],
    /// Set if a call may end without its last closing mark, because servers remove the mark or the form has
    /// none.
    pub(super) is_open_ended: bool,
    /// Set if a semicolon can join another call to this one.
    pub(super) is_joinable: bool,
    /// Set if the mark has a meaning only once its format is known; before that it is text.
    pub(super) needs_format: bool,
}

/// Defaults of the forms in the table.
const BASE_FORM: CallForm = CallForm {
    format: Hermes,
    open_mark: "",
    head: &[],
    body: NoArguments,
    close_marks: &[],
    is_open_ended: false,
    is_joinable: false,
    needs_format: false,
};

/// Returns the form of a mark of the structure around calls.
const fn structure_mark(format: CallFormat, open_mark: &'static str) -> CallForm {
    CallForm { format, open_mark, ..BASE_FORM }
}

/// Like [`structure_mark`], for a mark that is text until its format is known.
const fn known_format_mark(format: CallFormat, open_mark: &'static str) -> CallForm {
    CallForm { format, open_mark, needs_format: true, ..BASE_FORM }
}

/// Returns the form of a mark inside calls of a known format. Outside a call the mark begins nothing: its
/// only step never matches.
const fn inner_mark(format: CallFormat, open_mark: &'static str) -> CallForm {
    CallForm { format, open_mark, head: &[OneOf(&[])], needs_format: true, ..BASE_FORM }
}

// Marks and steps that several forms share.
const CALL: &str = "<tool_call>";
const CALL_END: &[&str] = &["</tool_call>"];
const OBJECT: FormStep = NextIs(&["{"]);
/// Possible first keys of an object that is a call, after the opening quote.
const CALL_KEYS: &[&str] = &["name\"", "type\"", "function\"", "parameters\"", "arguments\""];
const DEEPSEEK_SEPARATOR: &str = "<｜tool▁sep｜>";
const DEEPSEEK_CALL: &str = "<｜tool▁call▁begin｜>";
const DEEPSEEK_CALL_END: &[&str] = &["```", "<｜tool▁call▁end｜>"];
/// Channels of Harmony, in which a message is written.
const CHANNELS: &[&str] = &["commentary", "analysis", "final"];
const MESSAGE: FormStep = Text("<|message|>");
const CONSTRAIN: FormStep = Optional("<|constrain|>");
const JSON: FormStep = Optional("json");
const ASSISTANT_START: &str = "<|start|>assistant";
const CHANNEL: &str = "<|channel|>";
/// Head of a Harmony call: the channel, then the recipient, which is the tool.
const CHANNEL_TO: &[FormStep] =
    &[OneOf(CHANNELS), Space, Text("to="), Name, Space, CONSTRAIN, JSON, Space, MESSAGE, Space, OBJECT];
const HARMONY_END: &[&str] = &["<|call|>"];

/// Table of the forms. The first matching form is used.
pub(super) static FORMS: &[CallForm] = &[
    CallForm {
        open_mark: CALL,
        head: &[Space, NextIs(&["{", "["])],
        body: CallObjects,
        close_marks: CALL_END,
        ..BASE_FORM
    },
    CallForm {
        format: Qwen3Coder,
        open_mark: CALL,
        head: &[Space, Text("<function="), Name, Text(">")],
        body: Parameters,
        close_marks: CALL_END,
        ..BASE_FORM
    },
    // Llama writes JSON into a `<function=NAME>` element.
    CallForm {
        format: Llama,
        open_mark: "<function=",
        head: &[Name, Text(">"), Space, OBJECT],
        body: ArgsObject,
        close_marks: &["</function>"],
        ..BASE_FORM
    },
    // The template of Qwen3-Coder also has calls without `<tool_call>` around them.
    CallForm {
        format: Qwen3Coder,
        open_mark: "<function=",
        head: &[Name, Text(">")],
        body: Parameters,
        close_marks: &["</function>"],
        ..BASE_FORM
    },
    CallForm {
        format: Glm,
        open_mark: CALL,
        head: &[Space, Name, Space, NextIs(&["<arg_key>", "</tool_call>"])],
        body: Pairs,
        close_marks: CALL_END,
        ..BASE_FORM
    },
    CallForm {
        format: Llama,
        open_mark: "<|python_tag|>",
        head: &[Space, OBJECT],
        body: CallObjects,
        is_open_ended: true,
        is_joinable: true,
        ..BASE_FORM
    },
    CallForm {
        format: Llama,
        open_mark: "<|python_tag|>",
        head: &[Space, ArgumentsStart, Name, NextIs(&["("])],
        body: Python,
        is_open_ended: true,
        ..BASE_FORM
    },
    CallForm {
        format: Llama,
        open_mark: "<|python_start|>",
        head: &[Space, ArgumentsStart, Text("["), Space, Name, Space, NextIs(&["("])],
        body: Python,
        close_marks: &["<|python_end|>"],
        is_open_ended: true,
        ..BASE_FORM
    },
    // Without a mark, at the beginning of a reply.
    CallForm {
        format: Llama,
        head: &[ArgumentsStart, Text("{"), Space, Text("\""), NextIs(CALL_KEYS)],
        body: CallObjects,
        is_open_ended: true,
        is_joinable: true,
        ..BASE_FORM
    },
    CallForm {
        format: Llama,
        head: &[ArgumentsStart, Text("["), Space, Name, Space, NextIs(&["("])],
        body: Python,
        is_open_ended: true,
        ..BASE_FORM
    },
    CallForm {
        format: Mistral,
        open_mark: "[TOOL_CALLS]",
        head: &[Space, NextIs(&["[", "{"])],
        body: CallObjects,
        is_open_ended: true,
        ..BASE_FORM
    },
    CallForm {
        format: Mistral,
        open_mark: "[TOOL_CALLS]",
        head: &[Space, Name, Optional("[ARGS]"), Space, OBJECT],
        body: ArgsObject,
        is_open_ended: true,
        ..BASE_FORM
    },
    CallForm {
        format: Mistral,
        open_mark: "[TOOL_CALLS]",
        head: &[Space, Name, Text("[CALL_ID]"), Id, Optional("[ARGS]"), Space, OBJECT],
        body: ArgsObject,
        is_open_ended: true,
        ..BASE_FORM
    },
    // V3 and R1 write the kind first and put the arguments into a fence; V3.1 does neither.
    CallForm {
        format: DeepSeek,
        open_mark: DEEPSEEK_CALL,
        head: &[Text("function"), Text(DEEPSEEK_SEPARATOR), Name, Space, Optional("```json"), Space, OBJECT],
        body: ArgsObject,
        close_marks: DEEPSEEK_CALL_END,
        ..BASE_FORM
    },
    CallForm {
        format: DeepSeek,
        open_mark: DEEPSEEK_CALL,
        head: &[Name, Text(DEEPSEEK_SEPARATOR), Space, OBJECT],
        body: ArgsObject,
        close_marks: DEEPSEEK_CALL_END,
        ..BASE_FORM
    },
    // V3.2 writes calls as elements.
    CallForm {
        format: DeepSeek,
        open_mark: "<｜DSML｜function_calls>",
        head: &[Space, ArgumentsStart, Text("<｜DSML｜invoke name=\""), Name, Text("\">")],
        body: Elements(&DSML),
        close_marks: &["</｜DSML｜function_calls>"],
        ..BASE_FORM
    },
    CallForm {
        format: MiniMax,
        open_mark: "<minimax:tool_call>",
        head: &[Space, ArgumentsStart, Text("<invoke name=\""), Name, Text("\">")],
        body: Elements(&INVOKE),
        close_marks: &["</minimax:tool_call>"],
        ..BASE_FORM
    },
    structure_mark(DeepSeek, "<｜tool▁calls▁begin｜>"),
    structure_mark(DeepSeek, "<｜tool▁calls▁end｜>"),
    CallForm {
        format: Kimi,
        open_mark: "<|tool_call_begin|>",
        head: &[Space, Name, Space, Text("<|tool_call_argument_begin|>"), Space, OBJECT],
        body: ArgsObject,
        close_marks: &["<|tool_call_end|>"],
        ..BASE_FORM
    },
    structure_mark(Kimi, "<|tool_calls_section_begin|>"),
    structure_mark(Kimi, "<|tool_calls_section_end|>"),
    structure_mark(Kimi, "<|tool_call_section_begin|>"),
    structure_mark(Kimi, "<|tool_call_section_end|>"),
    CallForm {
        format: Harmony,
        open_mark: CHANNEL,
        head: CHANNEL_TO,
        body: ArgsObject,
        close_marks: HARMONY_END,
        is_open_ended: true,
        ..BASE_FORM
    },
    CallForm {
        format: Harmony,
        open_mark: ASSISTANT_START,
        head: &[
            Text(CHANNEL),
            OneOf(CHANNELS),
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
        body: ArgsObject,
        close_marks: HARMONY_END,
        is_open_ended: true,
        ..BASE_FORM
    },
    CallForm {
        format: Harmony,
        open_mark: ASSISTANT_START,
        head: &[
            Space,
            Text("to="),
            Name,
            Space,
            Text(CHANNEL),
            OneOf(CHANNELS),
            Space,
            CONSTRAIN,
            JSON,
            Space,
            MESSAGE,
            Space,
            OBJECT,
        ],
        body: ArgsObject,
        close_marks: HARMONY_END,
        is_open_ended: true,
        ..BASE_FORM
    },
    CallForm {
        format: Harmony,
        open_mark: CHANNEL,
        head: &[OneOf(&["analysis"]), Space, MESSAGE],
        body: Reasoning,
        ..BASE_FORM
    },
    CallForm {
        format: Harmony,
        open_mark: ASSISTANT_START,
        head: &[Text(CHANNEL), OneOf(&["analysis"]), Space, MESSAGE],
        body: Reasoning,
        ..BASE_FORM
    },
    CallForm { format: Harmony, open_mark: CHANNEL, head: &[OneOf(CHANNELS), Space, MESSAGE], ..BASE_FORM },
    CallForm {
        format: Harmony,
        open_mark: ASSISTANT_START,
        head: &[Text(CHANNEL), OneOf(CHANNELS), Space, MESSAGE],
        ..BASE_FORM
    },
    known_format_mark(Harmony, "<|end|>"),
    known_format_mark(Harmony, "<|return|>"),
    known_format_mark(Harmony, "<|call|>"),
    inner_mark(Qwen3Coder, "<parameter="),
    inner_mark(Glm, "<arg_key>"),
    inner_mark(Glm, "<arg_value>"),
];

/// Returns the tool's name without the additions of a format: a namespace before it, or a number or `.call`
/// after it.
pub(super) fn tool_name(raw_name: &str, format: CallFormat, body: CallBody) -> &str {
    match format {
        Harmony | Kimi => {
            let name = raw_name.strip_prefix("functions.").unwrap_or(raw_name);
            match name.rsplit_once(':') {
                Some((name, number)) if format == Kimi && number.bytes().all(|b| b.is_ascii_digit()) => name,
                _ => name,
            }
        }
        Llama if body == Python => raw_name.strip_suffix(".call").unwrap_or(raw_name),
        _ => raw_name,
    }
}
