//! Marks that models put around their reasoning, in one table for all dialects.
//!
//! Tags match in any letter case and with attributes, other marks exactly. Each dialect decides at which
//! places of a reply marks count, and what the reasoning becomes.

use self::Kind::{Close, CloseOwn, Header, Open as Begin, Stop};
use self::Way::*;
use super::scan;
use super::space::is_space;

/// Most bytes of a mark, attributes included, for readers without a tag lexer.
pub const LONGEST: usize = 128;

/// Effect of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Begins reasoning.
    Open,
    /// Ends reasoning.
    Close,
    /// Ends reasoning that a mark of the same family began. Elsewhere it is text, since it has other
    /// meanings.
    CloseOwn,
    /// Begins a message that is no reasoning. Some templates put it before answers.
    Header,
    /// Ends a message, or the whole reply.
    Stop,
}

/// Family of marks that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Think,
    Thinking,
    Thought,
    Reasoning,
    Analysis,
    Scratchpad,
    Reflection,
    SeedThink,
    Bracket,
    Triangle,
    OfThought,
    Harmony,
    Template,
}

/// Number of families.
const WAYS: usize = Template as usize + 1;

/// Tag names. A tag opens and, with a slash, closes; with a kind, both forms have that effect.
static TAGS: &[(&str, Way, Option<Kind>)] = &[
    ("think", Think, None),
    ("thinking", Thinking, None),
    ("thought", Thought, None),
    ("reasoning", Reasoning, None),
    ("analysis", Analysis, None),
    ("scratchpad", Scratchpad, None),
    ("reflection", Reflection, None),
    ("seed:think", SeedThink, None),
    ("begin_of_thought", OfThought, None),
    ("end_of_thought", OfThought, Some(Close)),
];

/// Marks that are not tags. None is a prefix of another.
static WORDS: &[(&str, Way, Kind)] = &[
    ("[THINK]", Bracket, Begin),
    ("[/THINK]", Bracket, Close),
    ("◁think▷", Triangle, Begin),
    ("◁/think▷", Triangle, Close),
    ("<|begin_of_thought|>", OfThought, Begin),
    ("<|end_of_thought|>", OfThought, Close),
    // Analysis channel of Harmony; the template may have consumed `<|start|>assistant`.
    ("<|channel|>analysis<|message|>", Harmony, Begin),
    ("<|start|>assistant<|channel|>analysis<|message|>", Harmony, Begin),
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
pub struct Pair {
    /// Opening mark as text.
    pub open: &'static str,
    /// Closing mark as text.
    pub close: &'static str,
    /// Parsed opening mark.
    pub mark: Mark,
}

const fn pair(open: &'static str, close: &'static str, way: Way) -> Pair {
    Pair { open, close, mark: Mark { way, kind: Begin } }
}

/// Marks for writing reasoning, the usual pair first. `<thinking>` is not among them, since it begins a
/// structure too.
pub static PAIRS: &[Pair] = &[
    pair("<think>", "</think>", Think),
    pair("<reasoning>", "</reasoning>", Reasoning),
    pair("<thought>", "</thought>", Thought),
    pair("<analysis>", "</analysis>", Analysis),
    pair("<scratchpad>", "</scratchpad>", Scratchpad),
    pair("<reflection>", "</reflection>", Reflection),
    pair("<seed:think>", "</seed:think>", SeedThink),
    pair("[THINK]", "[/THINK]", Bracket),
    pair("◁think▷", "◁/think▷", Triangle),
    pair("<|begin_of_thought|>", "<|end_of_thought|>", OfThought),
];

/// A mark: its family and its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    way: Way,
    /// Effect of the mark.
    pub kind: Kind,
}

/// `<think>`.
pub const THINK: Mark = Mark { way: Think, kind: Begin };

/// `<thinking>`.
pub const THINKING: Mark = Mark { way: Thinking, kind: Begin };

/// The analysis channel of Harmony.
pub const HARMONY: Mark = Mark { way: Harmony, kind: Begin };

/// Beginning and end of a text in other templates, if written as tags, such as `<s>` and `</s>`.
pub const TEMPLATE: (Mark, Mark) = (Mark { way: Template, kind: Header }, Mark { way: Template, kind: Stop });

impl Mark {
    /// Returns whether both marks belong to the same family.
    #[must_use]
    pub fn same(self, other: Mark) -> bool {
        self.way == other.way
    }

    /// Closing mark that closes only its own family.
    #[must_use]
    pub fn as_own(self) -> Mark {
        Mark { kind: CloseOwn, ..self }
    }

    /// Closing mark of the same family.
    #[must_use]
    pub fn as_closing(self) -> Mark {
        Mark { kind: Close, ..self }
    }

    /// Returns whether it is a `thinking` tag, which also begins the structure of ThinkingML.
    #[must_use]
    pub fn is_thinking(self) -> bool {
        self.way == Thinking
    }

    /// Returns whether it neither begins nor ends reasoning.
    #[must_use]
    pub fn is_control(self) -> bool {
        matches!(self.kind, Header | Stop)
    }
}

/// Mark that the tag `name` stands for. Not for self-closing tags.
#[must_use]
pub fn of_tag(name: &str, close: bool) -> Option<Mark> {
    let (_, way, kind) = TAGS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
    let slash = if close { Close } else { Begin };
    Some(Mark { way: *way, kind: kind.unwrap_or(slash) })
}

/// Returns whether an unfinished token at the end of a reply is the beginning of a closing mark.
#[must_use]
pub fn is_half_close(carry: &str) -> bool {
    // Text that only might be attributes must not be lost.
    ["</", "<|", "[/", "◁/"].iter().any(|start| carry.starts_with(start))
        && !has_attributes(carry)
        && at(carry.as_bytes()) == Seen::Part
}

/// Returns whether a possibly unfinished mark has attributes.
#[must_use]
pub fn has_attributes(mark: &str) -> bool {
    let inside = mark.strip_prefix('<').unwrap_or_default();
    let inside = inside.strip_suffix('>').unwrap_or(inside);
    // Marks that are not tags contain no white space.
    inside.split_once(is_space).is_some_and(|(_, rest)| !rest.trim().is_empty())
}

/// Open reasoning: the mark that began it, and the families reopened inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    mark: Mark,
    /// Unclosed opening marks inside, by family; saturates.
    inner: [u8; WAYS],
}

/// Effect of a mark inside reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The mark is text of the reasoning.
    Text,
    /// The mark ends the reasoning.
    Close,
    /// The mark ends the reasoning, but belongs to another family than the one that began it.
    CloseForeign,
}

impl Open {
    /// Starts reasoning at `mark`.
    #[must_use]
    pub fn new(mark: Mark) -> Open {
        Open { mark, inner: [0; WAYS] }
    }

    /// Opening mark.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// Applies the next mark inside. A closing mark of another family ends the reasoning, unless that
    /// family was opened inside.
    pub fn see(&mut self, mark: Mark) -> Effect {
        let own = mark.same(self.mark);
        let inner = &mut self.inner[mark.way as usize];
        match mark.kind {
            Header | Stop => Effect::Text,
            Begin => {
                *inner = inner.saturating_add(u8::from(!own));
                Effect::Text
            }
            Close | CloseOwn if own => Effect::Close,
            Close if *inner == 0 => Effect::CloseForeign,
            Close | CloseOwn => {
                *inner = inner.saturating_sub(1);
                Effect::Text
            }
        }
    }
}

/// Offset of the first byte in `bytes` that may begin a mark.
#[inline]
#[must_use]
pub fn find(bytes: &[u8]) -> Option<usize> {
    scan::find3(b'<', b'[', 0xE2, bytes)
}

/// Match of a mark at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No mark.
    No,
    /// A prefix of a mark.
    Part,
    /// A mark, and its length in bytes.
    Mark(Mark, usize),
}

/// Matches a mark at the beginning of `text`.
#[must_use]
pub fn at(text: &[u8]) -> Seen {
    let mut word = Word::default();
    for (at, &byte) in text.iter().enumerate() {
        match word.byte(byte) {
            Seen::Part => {}
            Seen::Mark(mark, _) => return Seen::Mark(mark, at + 1),
            Seen::No => return tag(text),
        }
    }
    Seen::Part
}

/// Matches marks that are not tags, byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Bit set of the table entries that still match, and the bytes read.
    fit: u32,
    read: u8,
}

impl Default for Word {
    fn default() -> Word {
        Word { fit: (1 << WORDS.len()) - 1, read: 0 }
    }
}

impl Word {
    /// Reads the next byte.
    pub fn byte(&mut self, byte: u8) -> Seen {
        let read = usize::from(self.read);
        self.read += 1;
        for (i, (text, way, kind)) in WORDS.iter().enumerate() {
            if self.fit & 1 << i == 0 {
                continue;
            }
            if text.as_bytes()[read] != byte {
                self.fit &= !(1 << i);
            } else if read + 1 == text.len() {
                return Seen::Mark(Mark { way: *way, kind: *kind }, text.len());
            }
        }
        if self.fit == 0 { Seen::No } else { Seen::Part }
    }

    /// Matcher after one more byte.
    #[must_use]
    pub(super) fn after(mut self, byte: u8) -> Word {
        self.byte(byte);
        self
    }
}

/// Matches a tag at the beginning of `text`.
fn tag(text: &[u8]) -> Seen {
    let Some(rest) = text.strip_prefix(b"<") else { return Seen::No };
    let (close, rest) = match rest.strip_prefix(b"/") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let len = rest.iter().take_while(|byte| is_name(**byte)).count();
    let (name, rest) = rest.split_at(len);
    if rest.is_empty() {
        let may = |known: &&(&str, Way, Option<Kind>)| {
            known.0.as_bytes().get(..len).is_some_and(|start| start.eq_ignore_ascii_case(name))
        };
        return if TAGS.iter().any(|known| may(&known)) { Seen::Part } else { Seen::No };
    }
    let Some(mark) = std::str::from_utf8(name).ok().and_then(|name| of_tag(name, close)) else {
        return Seen::No;
    };
    if rest[0] != b'>' && !is_space(char::from(rest[0])) {
        return Seen::No;
    }
    let (mut quote, mut last) = (0, b' ');
    for (at, &byte) in rest.iter().enumerate() {
        let length = text.len() - rest.len() + at + 1;
        match byte {
            _ if length > LONGEST => return Seen::No,
            b'<' => return Seen::No,
            _ if quote != 0 => quote = if byte == quote { 0 } else { quote },
            // A self-closing tag.
            b'>' if last == b'/' => return Seen::No,
            b'>' => return Seen::Mark(mark, length),
            b'"' | b'\'' => quote = byte,
            _ => {}
        }
        last = byte;
    }
    if text.len() < LONGEST { Seen::Part } else { Seen::No }
}

/// Returns whether `byte` can be part of a tag name.
#[inline]
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':')
}
