//! Random damage to a reply, as models, templates and connections cause it.

use std::ops::Range;

use super::texts::WordSource;

/// Pieces to insert. Each `@` becomes a marker word.
const DAMAGE_PIECES: &[&str] = &[
    "@ ",
    "\n\n@ said:\n",
    "\n```\n",
    "\n```json\n",
    "```xml @\n",
    "\n~~~\n",
    "`",
    "``",
    "<!-- @ -->",
    "<!--",
    "-->",
    "<!-- @",
    "/* @ */",
    "// @\n",
    "<think>",
    "<think>@",
    "</think>",
    "<think>@</think>",
    "<think/>",
    "<thinking>",
    "</thinking>",
    "<reasoning>",
    "</reasoning>",
    "<analysis>@</analysis>",
    "[THINK]",
    "[/THINK]",
    "<serp>",
    "<serp>@</serp>",
    "</serp>",
    "<phase id=\"2\">",
    "<phase>",
    "</phase>",
    "<title>",
    "<title>@</title>",
    "</title>",
    "<final>",
    "\n<final>\n",
    "</final>",
    "<serp_queries>",
    "\n<!-- <serp_queries>\n[\"@\"]\n</serp_queries> -->\n",
    "</serp_queries>",
    "<b>",
    "<@>",
    "<@",
    "</@",
    "<b @=\"@\">",
    "<think @>",
    "<thinking a=\"@\">",
    "</think @>",
    "<phase id=\"3\" @>",
    "<title @>",
    "<final @=\"@\">",
    "<serp @>",
    "<phase title=\"@\">",
    "<!-- <think>@ -->",
    "<thi",
    "<",
    "</",
    "<a b=\"",
    "&lt;",
    "&",
    "<<ParsingError>>",
    "<<",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    "\\",
    ",",
    ":",
    "\\n",
    "\\u00",
    "{\"@\": \"@\"}",
    "\n{\"event\":\"final_delta\",\"data\":{\"text\":\"@\"}}\n",
    "\n{\"event\":\"progress\",\"data\":{\"text\":\"@\"}}\n",
    "{\"thought\":\"@\",\"response_mode\":\"GENERAL_CHAT\",\"direct_response\":\"@\",\"tool_calls\":[]}",
    "{\"response\":{\"咨询师\":\"@\"}}",
    "null",
    "\u{3000}",
    "\u{FEFF}",
    "\u{A0}",
    "\r\n",
    "\r",
    "\t",
    "\n",
    "\n\n",
    "    ",
    "中",
];

/// Bytes that are not UTF-8.
const INVALID_BYTES: &[&[u8]] = &[b"\xFF", b"\xE4\xBD", b"\xF0\x9F\x98", b"\x80", b"\0"];

/// Reply that is being damaged.
pub(super) struct ReplyDamage<'a> {
    words: &'a mut WordSource,
    bytes: Vec<u8>,
}

/// Damages `reply` a few times, or not at all.
pub(crate) fn damage_reply(words: &mut WordSource, reply: String) -> Vec<u8> {
    let mut damage = ReplyDamage { words, bytes: reply.into_bytes() };
    let times = match damage.words.below(16) {
        0 => 0,
        1..8 => 1,
        8..12 => 2,
        12..15 => 3,
        _ => 6,
    };
    for _ in 0..times {
        damage.apply_once();
    }
    damage.bytes
}

impl ReplyDamage<'_> {
    /// Applies one random change.
    fn apply_once(&mut self) {
        match self.words.below(21) {
            0 | 1 => self.cut_part(),
            2 | 3 => self.change_part(|damage, part| drop(damage.bytes.drain(part))),
            4 | 5 => self.change_part(|damage, part| {
                let copy = damage.bytes[part.clone()].to_vec();
                damage.insert(part.end, &copy);
            }),
            6 => self.swap_parts(),
            7 => self.change_part(|damage, part| {
                let moved_bytes: Vec<u8> = damage.bytes.drain(part).collect();
                let target = damage.random_offset();
                damage.insert(target, &moved_bytes);
            }),
            8..13 => {
                let piece = self.random_piece();
                let at = self.random_offset();
                self.insert(at, &piece);
            }
            13 => {
                let at = self.random_offset();
                let bytes = *self.words.random().pick(INVALID_BYTES);
                self.insert(at, bytes);
            }
            14 => {
                let at = self.words.below(self.bytes.len() + 1);
                self.bytes.truncate(at);
            }
            15 => {
                let range = self.random_range(60);
                self.bytes.drain(range);
            }
            16 => {
                let range = self.random_range(120);
                let copy = self.bytes[range.clone()].to_vec();
                self.insert(range.end, &copy);
            }
            17 => {
                let range = self.random_range(120);
                let moved_bytes: Vec<u8> = self.bytes.drain(range).collect();
                let at = self.random_offset();
                self.insert(at, &moved_bytes);
            }
            18 => {
                let at = self.random_offset();
                let (times, space) = (self.words.below(300), self.words.pick(&[" ", "\n", "\t", "\u{3000}"]));
                let mut piece = space.repeat(times);
                if self.words.draw_one_in(2) {
                    piece.push_str(&self.words.word());
                }
                self.insert(at, piece.as_bytes());
            }
            19 => {
                let text = String::from_utf8_lossy(&self.bytes).replace('\n', "\r\n");
                self.bytes = text.into_bytes();
            }
            _ => {
                // Removes everything before or after an offset.
                let at = self.random_offset();
                if self.words.draw_one_in(2) {
                    self.bytes.drain(..at);
                } else {
                    self.bytes.truncate(at);
                }
            }
        }
    }

    /// Inserts `piece` at the offset `at`.
    fn insert(&mut self, at: usize, piece: &[u8]) {
        self.bytes.splice(at..at, piece.iter().copied());
    }

    fn random_piece(&mut self) -> Vec<u8> {
        let piece = self.words.pick(DAMAGE_PIECES);
        let mut out = String::new();
        for c in piece.chars() {
            if c == '@' { out.push_str(&self.words.word()) } else { out.push(c) }
        }
        out.into_bytes()
    }

    /// Draws an offset, mostly at the border of a part or word.
    fn random_offset(&mut self) -> usize {
        if self.words.draw_one_in(6) || self.bytes.is_empty() {
            return self.words.below(self.bytes.len() + 1);
        }
        let parts = find_parts(&self.bytes);
        let part = &parts[self.words.below(parts.len())];
        if self.words.draw_one_in(2) { part.start } else { part.end }
    }

    /// Draws a range of less than `max_len` bytes.
    fn random_range(&mut self, max_len: usize) -> Range<usize> {
        let start = self.words.below(self.bytes.len() + 1);
        start..(start + self.words.below(max_len)).min(self.bytes.len())
    }

    /// Applies `change` to a random structural part: a tag, a fence, a quote or a bracket.
    fn change_part(&mut self, change: impl FnOnce(&mut Self, Range<usize>)) {
        let parts = find_structural_parts(&self.bytes);
        if !parts.is_empty() {
            let index = self.words.below(parts.len());
            change(self, parts[index].clone());
        }
    }

    /// Removes a random piece of a structural part.
    fn cut_part(&mut self) {
        self.change_part(|damage, part| {
            let start = part.start + damage.words.below(part.len());
            let end = start + 1 + damage.words.below(part.end - start);
            damage.bytes.drain(start..end);
        });
    }

    /// Swaps two structural parts.
    fn swap_parts(&mut self) {
        let parts = find_structural_parts(&self.bytes);
        if parts.len() < 2 {
            return;
        }
        let (a, b) = (self.words.below(parts.len()), self.words.below(parts.len()));
        let (a, b) = (parts[a.min(b)].clone(), parts[a.max(b)].clone());
        if a.end <= b.start {
            let (first, second) = (self.bytes[a.clone()].to_vec(), self.bytes[b.clone()].to_vec());
            self.bytes.splice(b, first);
            self.bytes.splice(a, second);
        }
    }
}

/// Finds all parts of a reply.
fn find_parts(bytes: &[u8]) -> Vec<Range<usize>> {
    classify_parts(bytes).into_iter().map(|(part, _)| part).collect()
}

/// Finds the structural parts of a reply: tags, runs of backticks or tildes, JSON punctuation.
fn find_structural_parts(bytes: &[u8]) -> Vec<Range<usize>> {
    let parts = classify_parts(bytes).into_iter();
    parts.filter(|(_, is_structure)| *is_structure).map(|(part, _)| part).collect()
}

/// Divides a reply into parts, each with a flag that is true for a structural part. The others are words,
/// white space and single bytes.
fn classify_parts(bytes: &[u8]) -> Vec<(Range<usize>, bool)> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let (len, is_structure) = match bytes[at] {
            b'<' => {
                // A tag is at most 48 bytes long.
                let window = &bytes[at..bytes.len().min(at + 48)];
                let len = window.iter().position(|&b| b == b'>').map_or(1, |end| end + 1);
                (len, true)
            }
            b'-' if bytes[at..].starts_with(b"-->") => (3, true),
            b'`' | b'~' => (bytes[at..].iter().take_while(|&&b| b == bytes[at]).count(), true),
            b'{' | b'}' | b'[' | b']' | b'"' | b',' | b':' | b'\\' => (1, true),
            b if b.is_ascii_whitespace() => {
                (bytes[at..].iter().take_while(|b| b.is_ascii_whitespace()).count(), false)
            }
            b if b.is_ascii_alphanumeric() || b == b'_' => {
                (bytes[at..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count(), false)
            }
            _ => (1, false),
        };
        at += len;
        parts.push((start..at, is_structure));
    }
    parts
}
