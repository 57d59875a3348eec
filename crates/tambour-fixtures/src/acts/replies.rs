//! Replies with blocks that act, each in a zone that is known.

use super::blocks::{self, WrittenBlock};
use crate::words::{WordNumber, WordSource, find_words, marker};

/// Surroundings of a block, or the fault of its own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockCondition {
    /// It may act.
    Plain,
    /// Between the marks of reasoning.
    Reasoning,
    /// Before a closing mark of reasoning that no mark opened.
    Unopened,
    /// In a fence.
    Fence,
    /// In a code span on one line.
    Span,
    /// In a code span of several lines.
    LongSpan,
    /// In a block quotation.
    Quotation,
    /// In an HTML comment.
    Comment,
    /// In the middle of a sentence.
    Sentence,
    /// In the final channel of Harmony.
    FinalChannel,
    /// A value of it can only be guessed.
    Guessed,
    /// Something stands there twice, of which one may count.
    Doubled,
    /// It calls a tool that nobody registered.
    Unregistered,
    /// Under a key that means no plan.
    Wrapped,
    /// In a reply of a dialect that has no actions.
    Foreign,
}

impl BlockCondition {
    /// Returns whether the fault is in the text of the block itself, wherever it stands.
    #[must_use]
    pub fn is_block_fault(self) -> bool {
        matches!(
            self,
            BlockCondition::Guessed
                | BlockCondition::Doubled
                | BlockCondition::Unregistered
                | BlockCondition::Wrapped
        )
    }

    /// Set around a block in the middle of text.
    fn encloses_block(self) -> bool {
        matches!(self, Fence | Span | LongSpan | Quotation | Comment | Sentence)
    }
}

use BlockCondition::*;

/// Zones in which blocks must not act, and the dialects whose replies try them, all of them.
const ZONES: &[(BlockCondition, &[&str])] = &[
    (Reasoning, &["filament", "toolcall", "aiplan", "ai_say"]),
    (Unopened, &["toolcall", "aiplan", "ai_say"]),
    (Fence, &["filament", "toolcall"]),
    (Span, &["filament", "toolcall", "aiplan", "ai_say"]),
    (LongSpan, &["toolcall", "aiplan", "ai_say"]),
    (Quotation, &["filament", "toolcall", "aiplan", "ai_say"]),
    (Comment, &["filament", "toolcall", "aiplan", "ai_say"]),
    (Sentence, &["toolcall", "aiplan", "ai_say"]),
    (FinalChannel, &["toolcall"]),
    (Guessed, &["filament", "toolcall", "aiplan"]),
    (Doubled, &["filament", "toolcall", "aiplan"]),
    (Unregistered, &["filament", "toolcall", "aiplan"]),
    (Wrapped, &["aiplan"]),
];

/// Writes the blocks of a reply.
type Source = fn(&mut Composer<'_>);

/// Replies with blocks, by dialect.
const SOURCES: &[(&str, Source)] =
    &[("filament", filament), ("toolcall", toolcall), ("aiplan", aiplan), ("ai_say", ai_say)];

/// Dialects without actions, which read the replies of all others.
const INERT: &[&str] = &["thinkingml", "jsonseq", "plain", "json_value"];

/// The zones that replies of the dialect try.
#[must_use]
pub fn zones(dialect: &str) -> Vec<BlockCondition> {
    if INERT.contains(&dialect) {
        return vec![Foreign];
    }
    let is_tried = |dialect_name: &str| match dialect {
        // It never reads calls that are written as text.
        "auto" => dialect_name != "toolcall",
        _ => dialect_name == dialect,
    };
    ZONES
        .iter()
        .filter(|(_, dialect_names)| dialect_names.iter().any(|dialect_name| is_tried(dialect_name)))
        .map(|(zone, _)| *zone)
        .collect()
}

/// A block in a reply.
#[derive(Clone, Debug)]
pub struct Block {
    /// Zone of the block.
    pub zone: BlockCondition,
    /// Its text, as it stands there.
    pub text: String,
    /// Its marker words.
    pub words: Vec<WordNumber>,
    /// Offset of its first byte.
    pub start: usize,
    /// End of the bytes that must arrive before it may act.
    pub needed_end: usize,
    /// End of its zone.
    pub end: usize,
    /// True of a block that is only shown, as much of it as there is.
    pub is_shown: bool,
    /// Name of the written form of a call; empty for all else.
    pub form: &'static str,
}

/// A reply before it is damaged.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The text.
    pub text: String,
    /// Blocks in it.
    pub blocks: Vec<Block>,
}

impl Reply {
    /// A reply for the dialect.
    #[must_use]
    pub fn new(dialect: &str, words: &mut WordSource) -> Reply {
        let (source, compose) = match SOURCES.iter().find(|(source, _)| *source == dialect) {
            Some(source) => *source,
            None => SOURCES[words.below(SOURCES.len())],
        };
        let mut composer = Composer { words, reply: Reply::default(), zones: zones(source) };
        compose(&mut composer);
        let mut reply = composer.reply;
        if INERT.contains(&dialect) || dialect == "auto" && source == "toolcall" {
            reply.blocks.iter_mut().for_each(|block| block.zone = Foreign);
        }
        reply
    }
}

/// A reply under way.
struct Composer<'a> {
    words: &'a mut WordSource,
    reply: Reply,
    zones: Vec<BlockCondition>,
}

/// Marks of reasoning, opening and closing.
const MARKS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
];

/// Those that are tags of Filament.
const THOUGHTS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thought>", "</thought>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
];

impl Composer<'_> {
    fn push_text(&mut self, text: &str) {
        self.reply.text.push_str(text);
    }

    /// Prose that opens nothing, and ends its line.
    fn push_prose(&mut self) {
        let prose = self.words.prose();
        self.push_text(&prose);
        self.push_text("\n");
    }

    /// Adds a block; its zone ends where `end` is called.
    fn push_block(&mut self, zone: BlockCondition, written_block: WrittenBlock) {
        let WrittenBlock { text, needed_len, fault, is_shown, form } = written_block;
        let zone = if zone == Plain { fault } else { zone };
        let start = self.reply.text.len();
        self.push_text(&text);
        let words = words_of(&text);
        let end = self.reply.text.len();
        self.reply.blocks.push(Block {
            zone,
            text,
            words,
            start,
            needed_end: start + needed_len,
            end,
            is_shown,
            form,
        });
    }

    /// The zone of the last block ends here.
    fn end_zone(&mut self) {
        let end = self.reply.text.len();
        if let Some(block) = self.reply.blocks.last_mut() {
            block.end = end;
        }
    }

    /// One of the zones of code, quotations and comments, with a block, if this dialect knows it.
    fn push_enclosed_block(&mut self, make_block: fn(&mut WordSource, bool) -> WrittenBlock) {
        let surrounding_zones: Vec<BlockCondition> =
            ZONES.iter().map(|(zone, _)| *zone).filter(|zone| zone.encloses_block()).collect();
        let zone = *self.words.random().pick(&surrounding_zones);
        if !self.zones.contains(&zone) {
            return;
        }
        let spans = matches!(zone, Span | LongSpan);
        let written_block = make_block(self.words, spans);
        match zone {
            Fence => {
                let (fence, language) = (self.words.pick(&["````", "~~~~"]), self.words.pick(&["", "xml"]));
                self.push_text(&format!("\n{fence}{language}\n"));
                self.push_block(zone, written_block);
                self.push_text(&format!("\n{fence}\n"));
            }
            Span => {
                self.push_text("You write `");
                self.push_block(zone, written_block.into_one_line());
                self.push_text("` to do it.\n");
            }
            LongSpan => {
                let line = self.words.text_line();
                self.push_text(&format!("You write `{line}\n"));
                self.push_block(zone, written_block.into_one_line());
                let line = self.words.text_line();
                self.push_text(&format!("\n{line}` to do it.\n"));
            }
            Quotation => {
                self.push_text("\n> ");
                let quote_lines = |text: &str| text.replace('\n', "\n> ");
                let needed_len = quote_lines(&written_block.text[..written_block.needed_len]).len();
                self.push_block(
                    zone,
                    WrittenBlock { text: quote_lines(&written_block.text), needed_len, ..written_block },
                );
                self.push_text("\n\n");
            }
            Comment => {
                self.push_text("\n<!-- ");
                self.push_block(zone, written_block);
                self.push_text(" -->\n");
            }
            _ => {
                self.push_text("You would write ");
                self.push_block(zone, written_block.into_one_line());
                self.push_text(" to do it.\n");
            }
        }
        self.end_zone();
    }

    /// Reasoning with a block, at the beginning of a reply.
    fn push_reasoning(
        &mut self,
        marks: &[(&str, &str)],
        make_block: fn(&mut WordSource, bool) -> WrittenBlock,
    ) {
        let (open, close) = *self.words.random().pick(marks);
        let is_unopened = self.zones.contains(&Unopened) && self.words.is_once_in(4);
        if !is_unopened {
            self.push_text(open);
        }
        self.push_text("\n");
        self.push_prose();
        let first = self.reply.blocks.len();
        let zone = if is_unopened { Unopened } else { Reasoning };
        for _ in 0..1 + self.words.below(2) {
            let written_block = make_block(self.words, false);
            self.push_block(zone, written_block);
            self.push_text("\n");
            self.push_prose();
        }
        self.push_text(if is_unopened { "</think>" } else { close });
        self.push_text("\n");
        let end = self.reply.text.len();
        self.reply.blocks[first..].iter_mut().for_each(|block| block.end = end);
    }
}

/// Marker words of a block, with those that its levels stand for.
fn words_of(text: &str) -> Vec<WordNumber> {
    let mut words: Vec<WordNumber> = find_words(text.as_bytes()).map(|(_, word)| word).collect();
    let levels =
        text.match_indices("90.").filter_map(|(at, _)| text.get(at + 3..at + 7)?.parse::<WordNumber>().ok());
    words.extend(levels);
    words
}

/// Counts the words of a block in a text.
pub(super) fn count(text: &[u8], word: WordNumber) -> usize {
    let level = super::action::level(word);
    let number = |window: &[u8]| window == level.as_bytes();
    find_words(text).filter(|(_, found)| *found == word).count()
        + text.windows(level.len()).filter(|window| number(window)).count()
}

/// A word that stands nowhere, for planted faults.
#[must_use]
pub(super) fn word_text(word: WordNumber) -> String {
    marker(word)
}

fn filament(composer: &mut Composer<'_>) {
    let block = |words: &mut WordSource, _: bool| blocks::filament(words);
    if composer.words.is_once_in(3) {
        composer.push_reasoning(THOUGHTS, block);
    }
    composer.push_text("<content>\n");
    for _ in 0..1 + composer.words.below(3) {
        composer.push_prose();
        composer.push_enclosed_block(block);
    }
    composer.push_prose();
    composer.push_text("</content>\n");
    for _ in 0..composer.words.below(4) {
        let written_block = blocks::filament(composer.words);
        composer.push_block(Plain, written_block);
        composer.push_text("\n");
    }
}

fn toolcall(composer: &mut Composer<'_>) {
    if composer.words.is_once_in(3) {
        composer.push_reasoning(MARKS, blocks::toolcall);
    }
    for _ in 0..composer.words.below(3) {
        composer.push_prose();
        composer.push_enclosed_block(blocks::toolcall);
    }
    if composer.words.is_once_in(2) {
        composer.push_prose();
    }
    for _ in 0..composer.words.below(3) {
        let written_block = blocks::toolcall(composer.words, false);
        composer.push_block(Plain, written_block);
        composer.push_text("\n");
    }
    if composer.words.is_once_in(6) {
        composer.push_text("<|channel|>final<|message|>");
        composer.push_prose();
        let written_block = blocks::toolcall(composer.words, false);
        composer.push_block(FinalChannel, written_block);
        composer.push_text("\n<|end|>");
        composer.end_zone();
    }
}

fn aiplan(composer: &mut Composer<'_>) {
    objects(composer, |words, _| blocks::plan(words));
}

fn ai_say(composer: &mut Composer<'_>) {
    objects(composer, |words, _| blocks::answer(words));
}

/// A reply that is one object, with others that are none of it.
fn objects(composer: &mut Composer<'_>, make_block: fn(&mut WordSource, bool) -> WrittenBlock) {
    if composer.words.is_once_in(3) {
        composer.push_reasoning(MARKS, make_block);
    }
    for _ in 0..composer.words.below(3) {
        composer.push_prose();
        composer.push_enclosed_block(make_block);
    }
    if composer.words.is_once_in(2) {
        let fence = composer.words.is_once_in(3);
        composer.push_text(if fence { "\n```json\n" } else { "\n" });
        let written_block = make_block(composer.words, false);
        composer.push_block(Plain, written_block);
        composer.push_text(if fence { "\n```\n" } else { "\n" });
        if composer.words.is_once_in(3) {
            composer.push_prose();
        }
    }
}
