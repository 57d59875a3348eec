//! Marks that models put around their reasoning: one table for all dialects.
//!
//! Tags are read in any letter case and with attributes, other marks as they are. Which places of a reply count, and what
//! reasoning becomes there, is the dialect's business.

use self::Kind::{Close, CloseOwn, Header, Open as Begin, Stop};
use self::Way::*;
use super::scan;
use super::space::is_space;

/// Most bytes of a mark where there is no lexer of tags, attributes included.
pub const LONGEST: usize = 128;

/// What a mark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reasoning begins.
    Open,
    /// Reasoning ends.
    Close,
    /// Reasoning ends that this way of marking it began. Elsewhere it is text, since it has other meanings.
    CloseOwn,
    /// A message begins that is no reasoning. Some templates put it in front of answers.
    Header,
    /// A message ends, or the whole reply.
    Stop,
}

/// A way to mark reasoning.
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

/// Ways in all.
const WAYS: usize = Template as usize + 1;

/// Names of tags. They open and, with a slash, close; those with a kind do that in both forms.
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

/// Marks that are no tags. None is the beginning of another.
static WORDS: &[(&str, Way, Kind)] = &[
    ("[THINK]", Bracket, Begin),
    ("[/THINK]", Bracket, Close),
    ("◁think▷", Triangle, Begin),
    ("◁/think▷", Triangle, Close),
    ("<|begin_of_thought|>", OfThought, Begin),
    ("<|end_of_thought|>", OfThought, Close),
    // The analysis channel of Harmony; the template may have swallowed who starts.
    ("<|channel|>analysis<|message|>", Harmony, Begin),
    ("<|start|>assistant<|channel|>analysis<|message|>", Harmony, Begin),
    ("<|channel|>final<|message|>", Harmony, Close),
    ("<|start|>assistant<|channel|>final<|message|>", Harmony, Close),
    ("<|end|>", Harmony, CloseOwn),
    // A commentary for the user; one with a receiver is a call.
    ("<|channel|>commentary<|message|>", Harmony, Header),
    ("<|start|>assistant<|channel|>commentary<|message|>", Harmony, Header),
    ("<|return|>", Harmony, Stop),
    // What ends a message in other templates.
    ("<|im_end|>", Template, Stop),
    ("<|eot_id|>", Template, Stop),
    ("<|eom_id|>", Template, Stop),
    ("<|endoftext|>", Template, Stop),
    ("<|end_of_text|>", Template, Stop),
    ("<|end_of_turn|>", Template, Stop),
    ("[/INST]", Template, Stop),
    // What begins one of the model.
    ("<|im_start|>assistant", Template, Header),
    ("<|start_header_id|>assistant<|end_header_id|>", Template, Header),
];

/// A way to mark reasoning, as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// What opens it.
    pub open: &'static str,
    /// What closes it.
    pub close: &'static str,
    /// The opening mark.
    pub mark: Mark,
}

const fn pair(open: &'static str, close: &'static str, way: Way) -> Pair {
    Pair { open, close, mark: Mark { way, kind: Begin } }
}

/// Ways to write reasoning, the usual one first. `<thinking>` is none, since it begins a structure too.
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

/// One mark: which way of marking it belongs to, and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    way: Way,
    /// What it does.
    pub kind: Kind,
}

/// `<think>`.
pub const THINK: Mark = Mark { way: Think, kind: Begin };

/// `<thinking>`.
pub const THINKING: Mark = Mark { way: Thinking, kind: Begin };

/// The analysis channel of Harmony.
pub const HARMONY: Mark = Mark { way: Harmony, kind: Begin };

/// What begins a text of other templates, and what ends one, where they are written as tags, such as `<s>` and `</s>`.
pub const TEMPLATE: (Mark, Mark) = (Mark { way: Template, kind: Header }, Mark { way: Template, kind: Stop });

impl Mark {
    /// Whether both marks belong to the same way.
    #[must_use]
    pub fn same(self, other: Mark) -> bool {
        self.way == other.way
    }

    /// The mark of the same way that closes only its own.
    #[must_use]
    pub fn as_own(self) -> Mark {
        Mark { kind: CloseOwn, ..self }
    }

    /// The mark of the same way that closes.
    #[must_use]
    pub fn as_closing(self) -> Mark {
        Mark { kind: Close, ..self }
    }

    /// Whether it is a tag called `thinking`, which also begins the structure of ThinkingML.
    #[must_use]
    pub fn is_thinking(self) -> bool {
        self.way == Thinking
    }

    /// Whether it neither begins nor ends reasoning.
    #[must_use]
    pub fn is_control(self) -> bool {
        matches!(self.kind, Header | Stop)
    }
}

/// The mark that a tag called `name` is. A tag that closes itself is none.
#[must_use]
pub fn of_tag(name: &str, close: bool) -> Option<Mark> {
    let (_, way, kind) = TAGS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))?;
    let slash = if close { Close } else { Begin };
    Some(Mark { way: *way, kind: kind.unwrap_or(slash) })
}

/// Whether a token that is unfinished at the end of a reply is the beginning of a mark that closes.
#[must_use]
pub fn is_half_close(carry: &str) -> bool {
    // What may be attributes is text that would be lost.
    ["</", "<|", "[/", "◁/"].iter().any(|start| carry.starts_with(start))
        && !has_attributes(carry)
        && at(carry.as_bytes()) == Seen::Part
}

/// Whether a mark, as it is written so far, has attributes.
#[must_use]
pub fn has_attributes(mark: &str) -> bool {
    let inside = mark.strip_prefix('<').unwrap_or_default();
    let inside = inside.strip_suffix('>').unwrap_or(inside);
    // Marks that are no tags have no white space.
    inside.split_once(is_space).is_some_and(|(_, rest)| !rest.trim().is_empty())
}

/// Reasoning that is open: the mark that began it, and what began again inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    mark: Mark,
    /// How often each way began again inside, and has not ended.
    inner: [u8; WAYS],
}

/// What a mark inside of reasoning does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It belongs to the reasoning.
    Text,
    /// It ends the reasoning.
    Close,
    /// It ends the reasoning, which began with a mark of another name.
    CloseForeign,
}

impl Open {
    /// Reasoning that `mark` begins.
    #[must_use]
    pub fn new(mark: Mark) -> Open {
        Open { mark, inner: [0; WAYS] }
    }

    /// The mark that began it.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// The next mark inside. One that closes by another name closes what is open, unless that name was opened
    /// inside.
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

/// Where a mark may begin in `bytes`.
#[inline]
#[must_use]
pub fn find(bytes: &[u8]) -> Option<usize> {
    scan::find3(b'<', b'[', 0xE2, bytes)
}

/// What stands at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No mark.
    No,
    /// The beginning of one, so far.
    Part,
    /// A mark of so many bytes.
    Mark(Mark, usize),
}

/// The mark at the beginning of `text`.
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

/// A mark that is no tag, byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Those of the table that fit so far, a bit each, and their bytes read.
    fit: u32,
    read: u8,
}

impl Default for Word {
    fn default() -> Word {
        Word { fit: (1 << WORDS.len()) - 1, read: 0 }
    }
}

impl Word {
    /// The next byte.
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

    /// After a first byte.
    #[must_use]
    pub(super) fn after(mut self, byte: u8) -> Word {
        self.byte(byte);
        self
    }
}

/// The tag at the beginning of `text`.
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
            // It closes itself.
            b'>' if last == b'/' => return Seen::No,
            b'>' => return Seen::Mark(mark, length),
            b'"' | b'\'' => quote = byte,
            _ => {}
        }
        last = byte;
    }
    if text.len() < LONGEST { Seen::Part } else { Seen::No }
}

/// Whether `byte` belongs to the name of a tag.
#[inline]
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':')
}
