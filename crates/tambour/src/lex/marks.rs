//! Marks that models put around their reasoning, in one table for all dialects.
//!
//! Tags match in any letter case and with attributes, other marks exactly. Each dialect decides at which
//! places of a reply marks count, and what the reasoning becomes.

use self::MarkFamily::*;
use self::MarkKind::{Close, CloseOwn, Header, Open, Stop};
use super::scan;
use super::space::is_space;

/// Maximum length of a mark in bytes, attributes included, for readers without a tag lexer.
pub const MAX_MARK_LEN: usize = 128;

/// Effect of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// Begins reasoning.
    Open,
    /// Ends reasoning.
    Close,
    /// Ends reasoning that a mark of the same family began. Elsewhere it is text, since it has other
    /// meanings.
    CloseOwn,
    /// Begins a message that is not reasoning. Some templates put it before answers.
    Header,
    /// Ends a message, or the whole reply.
    Stop,
}

/// Family of marks that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkFamily {
    Think,
    Thinking,
    Thought,
    Reasoning,
    Analysis,
    Scratchpad,
    Reflection,
    SeedThink,
    /// `[THINK]`.
    Bracket,
    /// `◁think▷`.
    Triangle,
    BeginOfThought,
    /// Channels of the message format Harmony.
    Harmony,
    /// Control tokens of other chat templates.
    Template,
}

/// Number of families.
const FAMILY_COUNT: usize = Template as usize + 1;

/// Tags by name, in lower case. `None`: a tag opens and, with a slash, closes. With a kind, both forms have
/// that effect.
static TAG_MARKS: &[(&str, MarkFamily, Option<MarkKind>)] = &[
    ("think", Think, None),
    ("thinking", Thinking, None),
    ("thought", Thought, None),
    ("reasoning", Reasoning, None),
    ("analysis", Analysis, None),
    ("scratchpad", Scratchpad, None),
    ("reflection", Reflection, None),
    ("seed:think", SeedThink, None),
    ("begin_of_thought", BeginOfThought, None),
    ("end_of_thought", BeginOfThought, Some(Close)),
];

/// Marks that are not tags. No mark is a prefix of another. There are fewer than 32, since
/// [`LiteralMatcher`] has a bit for each.
static LITERAL_MARKS: &[(&str, MarkFamily, MarkKind)] = &[
    ("[THINK]", Bracket, Open),
    ("[/THINK]", Bracket, Close),
    ("◁think▷", Triangle, Open),
    ("◁/think▷", Triangle, Close),
    ("<|begin_of_thought|>", BeginOfThought, Open),
    ("<|end_of_thought|>", BeginOfThought, Close),
    // Analysis channel of Harmony; the template may have consumed `<|start|>assistant`.
    ("<|channel|>analysis<|message|>", Harmony, Open),
    ("<|start|>assistant<|channel|>analysis<|message|>", Harmony, Open),
    ("<|channel|>final<|message|>", Harmony, Close),
    ("<|start|>assistant<|channel|>final<|message|>", Harmony, Close),
    ("<|end|>", Harmony, CloseOwn),
    // Commentary for the user; a commentary with a recipient is a call.
    ("<|channel|>commentary<|message|>", Harmony, Header),
    ("<|start|>assistant<|channel|>commentary<|message|>", Harmony, Header),
    ("<|return|>", Harmony, Stop),
    // End of a message in other templates.
    ("<|im_end|>", Template, Stop),
    ("<|eot_id|>", Template, Stop),
    ("<|eom_id|>", Template, Stop),
    ("<|endoftext|>", Template, Stop),
    ("<|end_of_text|>", Template, Stop),
    ("<|end_of_turn|>", Template, Stop),
    ("[/INST]", Template, Stop),
    // Beginning of a message of the model in other templates.
    ("<|im_start|>assistant", Template, Header),
    ("<|start_header_id|>assistant<|end_header_id|>", Template, Header),
];

/// Marks that enclose reasoning.
#[derive(Clone, Copy, Debug)]
pub struct MarkPair {
    /// Opening mark as text.
    pub open: &'static str,
    /// Closing mark as text.
    pub close: &'static str,
    /// Parsed opening mark.
    pub mark: ReasoningMark,
}

const fn mark_pair(open: &'static str, close: &'static str, family: MarkFamily) -> MarkPair {
    MarkPair { open, close, mark: ReasoningMark { family, kind: Open } }
}

/// Marks for writing reasoning, the usual pair first. `<thinking>` is not among them, since it begins a
/// structure too.
pub static MARK_PAIRS: &[MarkPair] = &[
    mark_pair("<think>", "</think>", Think),
    mark_pair("<reasoning>", "</reasoning>", Reasoning),
    mark_pair("<thought>", "</thought>", Thought),
    mark_pair("<analysis>", "</analysis>", Analysis),
    mark_pair("<scratchpad>", "</scratchpad>", Scratchpad),
    mark_pair("<reflection>", "</reflection>", Reflection),
    mark_pair("<seed:think>", "</seed:think>", SeedThink),
    mark_pair("[THINK]", "[/THINK]", Bracket),
    mark_pair("◁think▷", "◁/think▷", Triangle),
    mark_pair("<|begin_of_thought|>", "<|end_of_thought|>", BeginOfThought),
];

/// A mark: its family and its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasoningMark {
    family: MarkFamily,
    /// Effect of the mark.
    pub kind: MarkKind,
}

/// `<think>`.
pub const THINK_MARK: ReasoningMark = ReasoningMark { family: Think, kind: Open };

/// `<thinking>`.
pub const THINKING_MARK: ReasoningMark = ReasoningMark { family: Thinking, kind: Open };

/// The analysis channel of Harmony.
pub const HARMONY_MARK: ReasoningMark = ReasoningMark { family: Harmony, kind: Open };

/// Beginning and end of a text in other templates, if written as tags, such as `<s>` and `</s>`.
pub const TEMPLATE_MARKS: (ReasoningMark, ReasoningMark) =
    (ReasoningMark { family: Template, kind: Header }, ReasoningMark { family: Template, kind: Stop });

impl ReasoningMark {
    /// Returns whether both marks belong to the same family.
    #[must_use]
    pub fn is_same_family(self, other: ReasoningMark) -> bool {
        self.family == other.family
    }

    /// Closing mark that closes only its own family.
    #[must_use]
    pub fn as_own_closing(self) -> ReasoningMark {
        ReasoningMark { kind: CloseOwn, ..self }
    }

    /// Closing mark of the same family.
    #[must_use]
    pub fn as_closing(self) -> ReasoningMark {
        ReasoningMark { kind: Close, ..self }
    }

    /// Returns whether the mark is a `thinking` tag, which also begins the structure of ThinkingML.
    #[must_use]
    pub fn is_thinking(self) -> bool {
        self.family == Thinking
    }

    /// Returns whether the mark neither begins nor ends reasoning.
    #[must_use]
    pub fn is_control(self) -> bool {
        matches!(self.kind, Header | Stop)
    }
}

/// Reasoning mark of an opening or closing tag called `name`; `None` if the tag is not a mark. Callers must
/// not pass self-closing tags, which are never marks.
#[must_use]
pub fn parse_tag_mark(name: &str, is_closing: bool) -> Option<ReasoningMark> {
    let (_, family, kind) = TAG_MARKS.iter().find(|(tag_name, ..)| tag_name.eq_ignore_ascii_case(name))?;
    let usual_kind = if is_closing { Close } else { Open };
    Some(ReasoningMark { family: *family, kind: kind.unwrap_or(usual_kind) })
}

/// Returns whether an unfinished token at the end of a reply may be dropped: it is the beginning of a closing
/// mark, or of any mark that begins with `<|`.
#[must_use]
pub fn is_half_close(carry: &str) -> bool {
    // Possible attributes may be text of the reply, which must not be lost.
    ["</", "<|", "[/", "◁/"].iter().any(|start| carry.starts_with(start))
        && !has_attributes(carry)
        && match_mark(carry.as_bytes()) == MarkMatch::Prefix
}

/// Returns whether a possibly unfinished mark has attributes.
#[must_use]
pub fn has_attributes(mark: &str) -> bool {
    let body = mark.strip_prefix('<').unwrap_or_default();
    let body = body.strip_suffix('>').unwrap_or(body);
    // Marks that are not tags contain no white space.
    body.split_once(is_space).is_some_and(|(_, rest)| !rest.trim().is_empty())
}

/// Reasoning that is open: the mark that began it, and the families opened inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenReasoning {
    mark: ReasoningMark,
    /// Number of unclosed opening marks inside, by family; saturates.
    nested_opens: [u8; FAMILY_COUNT],
}

/// Effect of a mark inside reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkEffect {
    /// The mark is text of the reasoning.
    Text,
    /// The mark ends the reasoning.
    Close,
    /// The mark ends the reasoning, but belongs to a family other than the one that began it.
    CloseForeign,
}

impl OpenReasoning {
    /// Starts reasoning at `mark`.
    #[must_use]
    pub fn new(mark: ReasoningMark) -> OpenReasoning {
        OpenReasoning { mark, nested_opens: [0; FAMILY_COUNT] }
    }

    /// Opening mark.
    #[must_use]
    pub fn mark(&self) -> ReasoningMark {
        self.mark
    }

    /// Applies the next mark inside. A closing mark of another family ends the reasoning, unless that
    /// family was opened inside or the mark closes only its own family.
    pub fn apply(&mut self, mark: ReasoningMark) -> MarkEffect {
        let is_own = mark.is_same_family(self.mark);
        let nested_opens = &mut self.nested_opens[mark.family as usize];
        match mark.kind {
            Header | Stop => MarkEffect::Text,
            // The family that began the reasoning does not nest: its first closing mark ends it.
            Open => {
                *nested_opens = nested_opens.saturating_add(u8::from(!is_own));
                MarkEffect::Text
            }
            Close | CloseOwn if is_own => MarkEffect::Close,
            Close if *nested_opens == 0 => MarkEffect::CloseForeign,
            Close | CloseOwn => {
                *nested_opens = nested_opens.saturating_sub(1);
                MarkEffect::Text
            }
        }
    }
}

/// Offset of the first byte in `bytes` that may begin a mark.
#[inline]
#[must_use]
pub fn find(bytes: &[u8]) -> Option<usize> {
    // 0xE2 is the first byte of `◁`.
    scan::find3(b'<', b'[', 0xE2, bytes)
}

/// Match of a mark at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkMatch {
    /// No mark.
    Mismatch,
    /// A prefix of a mark.
    Prefix,
    /// A mark, and its length in bytes.
    Mark(ReasoningMark, usize),
}

/// Matches a mark at the beginning of `text`.
#[must_use]
pub fn match_mark(text: &[u8]) -> MarkMatch {
    let mut matcher = LiteralMatcher::default();
    for (at, &byte) in text.iter().enumerate() {
        match matcher.push(byte) {
            MarkMatch::Prefix => {}
            MarkMatch::Mark(mark, _) => return MarkMatch::Mark(mark, at + 1),
            MarkMatch::Mismatch => return match_tag_mark(text),
        }
    }
    MarkMatch::Prefix
}

/// Matches marks that are not tags, byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteralMatcher {
    /// Bit set of the entries of [`LITERAL_MARKS`] that still match.
    candidates: u32,
    /// Number of bytes read.
    len: u8,
}

impl Default for LiteralMatcher {
    fn default() -> LiteralMatcher {
        LiteralMatcher { candidates: (1 << LITERAL_MARKS.len()) - 1, len: 0 }
    }
}

impl LiteralMatcher {
    /// Reads the next byte. Must not be called again after a mark or a mismatch.
    pub fn push(&mut self, byte: u8) -> MarkMatch {
        let index = usize::from(self.len);
        self.len += 1;
        for (i, (text, family, kind)) in LITERAL_MARKS.iter().enumerate() {
            if self.candidates & 1 << i == 0 {
                continue;
            }
            if text.as_bytes()[index] != byte {
                self.candidates &= !(1 << i);
            } else if index + 1 == text.len() {
                return MarkMatch::Mark(ReasoningMark { family: *family, kind: *kind }, text.len());
            }
        }
        if self.candidates == 0 { MarkMatch::Mismatch } else { MarkMatch::Prefix }
    }

    /// Matcher after one more byte.
    #[must_use]
    pub(super) fn with_byte(mut self, byte: u8) -> LiteralMatcher {
        self.push(byte);
        self
    }
}

/// Matches a mark that is a tag at the beginning of `text`.
fn match_tag_mark(text: &[u8]) -> MarkMatch {
    let Some(rest) = text.strip_prefix(b"<") else { return MarkMatch::Mismatch };
    let (is_closing, rest) = match rest.strip_prefix(b"/") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let len = rest.iter().take_while(|byte| is_name_byte(**byte)).count();
    let (name, rest) = rest.split_at(len);
    if rest.is_empty() {
        let is_possible = |entry: &&(&str, MarkFamily, Option<MarkKind>)| {
            entry.0.as_bytes().get(..len).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        return if TAG_MARKS.iter().any(|entry| is_possible(&entry)) {
            MarkMatch::Prefix
        } else {
            MarkMatch::Mismatch
        };
    }
    let Some(mark) = std::str::from_utf8(name).ok().and_then(|name| parse_tag_mark(name, is_closing)) else {
        return MarkMatch::Mismatch;
    };
    if rest[0] != b'>' && !is_space(char::from(rest[0])) {
        return MarkMatch::Mismatch;
    }
    // Quote of the open attribute value, or 0.
    let (mut quote, mut last) = (0, b' ');
    for (at, &byte) in rest.iter().enumerate() {
        let length = text.len() - rest.len() + at + 1;
        match byte {
            _ if length > MAX_MARK_LEN => return MarkMatch::Mismatch,
            b'<' => return MarkMatch::Mismatch,
            _ if quote != 0 => quote = if byte == quote { 0 } else { quote },
            // A self-closing tag.
            b'>' if last == b'/' => return MarkMatch::Mismatch,
            b'>' => return MarkMatch::Mark(mark, length),
            b'"' | b'\'' => quote = byte,
            _ => {}
        }
        last = byte;
    }
    if text.len() < MAX_MARK_LEN { MarkMatch::Prefix } else { MarkMatch::Mismatch }
}

/// Returns whether `byte` can be part of a tag name.
#[inline]
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':')
}
