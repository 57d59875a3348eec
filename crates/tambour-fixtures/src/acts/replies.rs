//! Random replies with blocks that act, such as tool calls, each in a known zone. Marker words in a block
//! identify it.

use super::blocks::{self, WrittenBlock};
use crate::words::{WordNumber, WordSource, find_words};

/// Zone of a block: its surroundings, or the fault in its own text. Only a block in `Plain` may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockZone {
    /// In plain text and without a fault.
    Plain,
    /// Between the marks of reasoning.
    Reasoning,
    /// Before a closing mark of reasoning without an opening mark.
    Unopened,
    /// In a fenced code block.
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
    /// In the final channel of Harmony, which is answer text.
    FinalChannel,
    /// With a value that a reader can only guess.
    Guessed,
    /// With a doubled key or name, of which only one could be meant.
    Doubled,
    /// With a call of a tool that is not registered.
    Unregistered,
    /// Wrapped in an object, under a key that does not denote a plan.
    Wrapped,
    /// In a reply that is read in a dialect that lacks the actions of its blocks.
    Foreign,
}

impl BlockZone {
    /// Returns `true` if the zone is a fault in the text of the block, wherever the block is.
    #[must_use]
    pub fn is_block_fault(self) -> bool {
        matches!(self, BlockZone::Guessed | BlockZone::Doubled | BlockZone::Unregistered | BlockZone::Wrapped)
    }

    /// Returns `true` if the zone surrounds a single block within other text.
    fn encloses_block(self) -> bool {
        matches!(self, Fence | Span | LongSpan | Quotation | Comment | Sentence)
    }
}

use BlockZone::*;

/// Zones in which blocks must not act, each with all dialects whose replies have blocks there.
const ZONES: &[(BlockZone, &[&str])] = &[
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

/// Function that writes a reply with its blocks.
type ReplyWriter = fn(&mut Composer<'_>);

/// Writers of replies, by dialect.
const REPLY_WRITERS: &[(&str, ReplyWriter)] =
    &[("filament", filament), ("toolcall", toolcall), ("aiplan", aiplan), ("ai_say", ai_say)];

/// Dialects without actions, which are tried with the replies of all other dialects.
const INERT_DIALECTS: &[&str] = &["thinkingml", "jsonseq", "plain", "json_value"];

/// Lists the zones in which replies of the dialect have blocks.
#[must_use]
pub fn zones(dialect: &str) -> Vec<BlockZone> {
    if INERT_DIALECTS.contains(&dialect) {
        return vec![Foreign];
    }
    let is_tried = |dialect_name: &str| match dialect {
        // `auto` never reads calls that are written as text.
        "auto" => dialect_name != "toolcall",
        _ => dialect_name == dialect,
    };
    ZONES
        .iter()
        .filter(|(_, dialect_names)| dialect_names.iter().any(|dialect_name| is_tried(dialect_name)))
        .map(|(zone, _)| *zone)
        .collect()
}

/// Block in a reply.
#[derive(Clone, Debug)]
pub struct Block {
    /// Zone of the block.
    pub zone: BlockZone,
    /// Text of the block, as in the reply.
    pub text: String,
    /// Marker words in the text.
    pub words: Vec<WordNumber>,
    /// Offset of the first byte.
    pub start: usize,
    /// End of the bytes that must arrive before the block may act, as an offset in the reply.
    pub needed_end: usize,
    /// End of the zone, as an offset in the reply.
    pub end: usize,
    /// True if the block only shows something; it is shown as far as it was written.
    pub is_display_only: bool,
    /// Written form of a call, one of [`FORMS`](super::FORMS); empty for other blocks.
    pub form: &'static str,
}

/// Reply before it is damaged.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Text of the reply.
    pub text: String,
    /// Blocks in the text, in order.
    pub blocks: Vec<Block>,
}

impl Reply {
    /// Makes a reply for `dialect` with the writer of that dialect, or with any writer if it has none.
    #[must_use]
    pub fn new(dialect: &str, words: &mut WordSource) -> Reply {
        let (written_dialect, write_reply) = match REPLY_WRITERS.iter().find(|(name, _)| *name == dialect) {
            Some(writer) => *writer,
            None => REPLY_WRITERS[words.below(REPLY_WRITERS.len())],
        };
        let mut composer = Composer { words, reply: Reply::default(), zones: zones(written_dialect) };
        write_reply(&mut composer);
        let mut reply = composer.reply;
        let is_inert = INERT_DIALECTS.contains(&dialect);
        if is_inert || dialect == "auto" && written_dialect == "toolcall" {
            reply.blocks.iter_mut().for_each(|block| block.zone = Foreign);
        }
        reply
    }
}

/// Reply that is being written, and the source of its words.
struct Composer<'a> {
    words: &'a mut WordSource,
    /// Reply written so far.
    reply: Reply,
    /// Zones in which replies of the dialect have blocks.
    zones: Vec<BlockZone>,
}

/// Marks before and after reasoning; the most frequent pair is listed twice.
const REASONING_MARKS: &[(&str, &str)] = &[
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

/// Marks before and after reasoning that are tags of Filament.
const FILAMENT_REASONING_MARKS: &[(&str, &str)] = &[
    ("<think>", "</think>"),
    ("<thought>", "</thought>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
];

impl Composer<'_> {
    fn push_text(&mut self, text: &str) {
        self.reply.text.push_str(text);
    }

    /// Appends a line or more of prose, without markup.
    fn push_prose(&mut self) {
        let prose = self.words.prose();
        self.push_text(&prose);
        self.push_text("\n");
    }

    /// Appends a block. The zone ends with the block, unless [`Composer::end_zone`] moves its end.
    fn push_block(&mut self, zone: BlockZone, written_block: WrittenBlock) {
        let WrittenBlock { text, needed_len, fault, is_display_only, form } = written_block;
        let zone = if zone == Plain { fault } else { zone };
        let start = self.reply.text.len();
        self.push_text(&text);
        let words = block_words(&text);
        let end = self.reply.text.len();
        self.reply.blocks.push(Block {
            zone,
            text,
            words,
            start,
            needed_end: start + needed_len,
            end,
            is_display_only,
            form,
        });
    }

    /// Ends the zone of the last block at the present end of the reply.
    fn end_zone(&mut self) {
        let end = self.reply.text.len();
        if let Some(block) = self.reply.blocks.last_mut() {
            block.end = end;
        }
    }

    /// Draws a zone and appends a block within code, a quotation, a comment or a sentence; appends nothing if
    /// the dialect has no blocks in that zone. The second argument of `make_block` is true for a code span.
    fn push_enclosed_block(&mut self, make_block: fn(&mut WordSource, bool) -> WrittenBlock) {
        let surrounding_zones: Vec<BlockZone> =
            ZONES.iter().map(|(zone, _)| *zone).filter(|zone| zone.encloses_block()).collect();
        let zone = *self.words.random().pick(&surrounding_zones);
        if !self.zones.contains(&zone) {
            return;
        }
        let is_span = matches!(zone, Span | LongSpan);
        let written_block = make_block(self.words, is_span);
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
            // `Sentence`, the only zone left.
            _ => {
                self.push_text("You would write ");
                self.push_block(zone, written_block.into_one_line());
                self.push_text(" to do it.\n");
            }
        }
        self.end_zone();
    }

    /// Appends reasoning with one or two blocks, for the beginning of a reply.
    fn push_reasoning(
        &mut self,
        marks: &[(&str, &str)],
        make_block: fn(&mut WordSource, bool) -> WrittenBlock,
    ) {
        let (open, close) = *self.words.random().pick(marks);
        let is_unopened = self.zones.contains(&Unopened) && self.words.draw_one_in(4);
        if !is_unopened {
            self.push_text(open);
        }
        self.push_text("\n");
        self.push_prose();
        let first_block = self.reply.blocks.len();
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
        self.reply.blocks[first_block..].iter_mut().for_each(|block| block.end = end);
    }
}

/// Lists the marker words of a block, including those that are encoded as levels of understanding.
fn block_words(text: &str) -> Vec<WordNumber> {
    let mut words: Vec<WordNumber> = find_words(text.as_bytes()).map(|(_, word)| word).collect();
    let levels =
        text.match_indices("90.").filter_map(|(at, _)| text.get(at + 3..at + 7)?.parse::<WordNumber>().ok());
    words.extend(levels);
    words
}

/// Counts a marker word in a text, as a word and encoded as a level of understanding.
pub(super) fn count_word(text: &[u8], word: WordNumber) -> usize {
    let level = super::action::encode_as_level(word);
    let is_level = |window: &[u8]| window == level.as_bytes();
    find_words(text).filter(|(_, found)| *found == word).count()
        + text.windows(level.len()).filter(|window| is_level(window)).count()
}

fn filament(composer: &mut Composer<'_>) {
    let make_block = |words: &mut WordSource, _: bool| blocks::filament(words);
    if composer.words.draw_one_in(3) {
        composer.push_reasoning(FILAMENT_REASONING_MARKS, make_block);
    }
    composer.push_text("<content>\n");
    for _ in 0..1 + composer.words.below(3) {
        composer.push_prose();
        composer.push_enclosed_block(make_block);
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
    if composer.words.draw_one_in(3) {
        composer.push_reasoning(REASONING_MARKS, blocks::toolcall);
    }
    for _ in 0..composer.words.below(3) {
        composer.push_prose();
        composer.push_enclosed_block(blocks::toolcall);
    }
    if composer.words.draw_one_in(2) {
        composer.push_prose();
    }
    for _ in 0..composer.words.below(3) {
        let written_block = blocks::toolcall(composer.words, false);
        composer.push_block(Plain, written_block);
        composer.push_text("\n");
    }
    if composer.words.draw_one_in(6) {
        composer.push_text("<|channel|>final<|message|>");
        composer.push_prose();
        let written_block = blocks::toolcall(composer.words, false);
        composer.push_block(FinalChannel, written_block);
        composer.push_text("\n<|end|>");
        composer.end_zone();
    }
}

fn aiplan(composer: &mut Composer<'_>) {
    object_reply(composer, |words, _| blocks::plan(words));
}

fn ai_say(composer: &mut Composer<'_>) {
    object_reply(composer, |words, _| blocks::answer(words));
}

/// Writes a reply in which at most one object may act, perhaps after other objects that must not.
fn object_reply(composer: &mut Composer<'_>, make_block: fn(&mut WordSource, bool) -> WrittenBlock) {
    if composer.words.draw_one_in(3) {
        composer.push_reasoning(REASONING_MARKS, make_block);
    }
    for _ in 0..composer.words.below(3) {
        composer.push_prose();
        composer.push_enclosed_block(make_block);
    }
    if composer.words.draw_one_in(2) {
        let is_fenced = composer.words.draw_one_in(3);
        composer.push_text(if is_fenced { "\n```json\n" } else { "\n" });
        let written_block = make_block(composer.words, false);
        composer.push_block(Plain, written_block);
        composer.push_text(if is_fenced { "\n```\n" } else { "\n" });
        if composer.words.draw_one_in(3) {
            composer.push_prose();
        }
    }
}
