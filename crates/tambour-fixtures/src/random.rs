//! Seeded random numbers and inputs. A seed gives the same input on every machine.

/// Small generator (SplitMix64): repeatable, not secret.
#[derive(Clone, Debug)]
pub struct RandomSource(u64);

impl RandomSource {
    /// Creates a generator from a seed.
    #[must_use]
    pub fn new(seed: u64) -> RandomSource {
        RandomSource(seed)
    }

    /// Draws 64 bits.
    pub fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Draws a number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next_bits() % end as u64) as usize }
    }

    /// Picks one item.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Draws offsets at which to cut an input of `len` bytes, in order. Pieces are at most as long as a limit
    /// that is drawn first.
    pub fn random_cuts(&mut self, len: usize) -> Vec<usize> {
        let max_piece_len = *self.pick(&[1, 2, 3, 5, 8, 16, 64, 256]);
        let mut cuts = Vec::new();
        let mut at = 0;
        loop {
            at += 1 + self.below(max_piece_len);
            if at >= len {
                return cuts;
            }
            cuts.push(at);
        }
    }

    /// Makes text of `count` pieces: mostly those that readers of replies look for (tags, half tags, fences,
    /// JSON, entities, white space), and now and then any character.
    pub fn tag_soup(&mut self, count: usize) -> String {
        let mut soup = String::new();
        for _ in 0..count {
            if self.below(12) == 0 {
                soup.push(char::from_u32(self.below(0x11_0000) as u32).unwrap_or('\u{FFFD}'));
            } else {
                soup.push_str(self.pick::<&str>(SOUP_PIECES));
            }
        }
        soup
    }

    /// Makes a ThinkingML reply in which the texts around removed markup could join into a new tag, among code
    /// and entities.
    pub fn torn_reply(&mut self) -> String {
        let mut reply = (*self.pick(TORN_BEGINNINGS)).to_owned();
        for _ in 0..4 + self.below(18) {
            let pieces = if self.below(3) == 0 { REMOVED_MARKUP } else { JOINING_TEXTS };
            reply.push_str(self.pick::<&str>(pieces));
        }
        reply
    }

    /// Returns `input` with a few bytes or ranges deleted, doubled, moved, replaced or inserted, or its end cut
    /// off.
    pub fn mutate(&mut self, input: &[u8]) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + 1 + self.below(24)).min(bytes.len()).max(at);
            match self.below(7) {
                0 => drop(bytes.drain(at..end)),
                1 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                2 => bytes.truncate(at),
                3 => {
                    let moved_bytes: Vec<u8> = bytes.drain(at..end).collect();
                    let target = self.below(bytes.len() + 1);
                    bytes.splice(target..target, moved_bytes);
                }
                4 => {
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte = self.next_bits() as u8;
                    }
                }
                5 => {
                    let piece = *self.pick::<&str>(SOUP_PIECES);
                    bytes.splice(at..at, piece.bytes());
                }
                _ => {
                    let piece = *self.pick::<&str>(SOUP_PIECES);
                    bytes.splice(at..end, piece.bytes());
                }
            }
        }
        bytes
    }
}

/// Beginnings of torn replies.
const TORN_BEGINNINGS: &[&str] = &[
    "",
    "<thinking><phase id=\"1\"><title>t</title>a</phase></thinking>\n<final>\n",
    "<thinking><phase id=\"1\"><title>t</title>a <final>\n",
    "<thinking>a\n<final>\n",
    "<thinking>a <final> b",
    "<phase id=\"1\"><title>t</title>a</phase>",
    "<serp>",
];

/// Markup that readers remove, whole or only its beginning or end.
const REMOVED_MARKUP: &[&str] = &[
    "</final>",
    "\n<final>\n",
    "</phase>",
    "<think>d</think>",
    "<think>",
    "</think>",
    "<serp>s</serp>",
    "<serp>",
    "<!-- <serp_queries>\n[]\n</serp_queries> -->",
    "\n<serp_queries>\n[\"q\"]\n</serp_queries>",
    "<serp_queries>",
    "\n[\"q\"]\n",
    " -->",
    "<b>",
    "<phase id=\"2\" title=\"x\">",
    "</thinking>",
];

/// Texts around the removed markup, including parts of tags.
const JOINING_TEXTS: &[&str] = &[
    "<",
    "</",
    "<b",
    "<a x=",
    "<a x=\"",
    "<a x='y'",
    "<!-",
    "-",
    "<!--",
    "-->",
    "b",
    " c",
    ">",
    "\"",
    "'",
    "/",
    "=",
    "`",
    "``",
    "```\n",
    "~~~\n",
    "\n",
    "\n>",
    " ",
    "text ",
    "&lt;",
    "&gt;",
    "&amp;",
    "&",
    "&l",
    "t;",
    "script",
    "<<Parsing",
    "Error>>",
    "think>",
    "<thi",
    "<c\n>",
    "<c d='`'>",
    "中",
];

/// Pieces of tag soup.
pub const SOUP_PIECES: &[&str] = &[
    "<think>",
    "</think>",
    "<serp>",
    "</serp>",
    "<thinking>",
    "</thinking>",
    "<phase id=\"1\">",
    "<phase id=\"2\">",
    "<phase id='3' x>",
    "<phase>",
    "</phase>",
    "<title>",
    "</title>",
    "<final>",
    "</final>",
    "<Final>",
    "</FINAL>",
    "<phase id=\"1\"/>",
    "<title>t</title>",
    "<!-- <serp_queries>\n",
    "<serp_queries>",
    "[\"q1\",\"q2\"]",
    "[\"a --> b\", 3, \"a\"",
    "\n</serp_queries> -->",
    "</serp_queries>",
    "-->",
    "<!--",
    "<!-",
    "<",
    ">",
    "</",
    "/>",
    "<a b=\"",
    "<b>",
    "&lt;",
    "&amp;lt;",
    "&",
    "&#60;",
    "&am",
    "<<ParsingError>>",
    "<<Parsing",
    "```",
    "```xml\n",
    "````",
    "`",
    "``",
    "~~~",
    "\n",
    "\r\n",
    "\n\n",
    " ",
    "    ",
    "\t",
    "\u{3000}",
    "\u{FEFF}",
    "text",
    "some words ",
    "中文",
    "😀",
    "{\"event\":\"thinking_start\",\"data\":{}}\n",
    "{\"event\":\"phase_start\",\"data\":{\"id\":1,\"title\":\"t\"}}\n",
    "{\"event\":\"phase_delta\",\"data\":{\"id\":1,\"text\":\"x\"}}\n",
    "{\"event\":\"thinking_end\",\"data\":{}}\n",
    "{\"event\":\"final_delta\",\"data\":{\"text\":\"",
    "{\"event\":\"final_delta\",\"text\":\"y\"}\n",
    "{\"event\":\"serp_queries\",\"data\":{\"queries\":[\"q\"]}}\n",
    "{\"event\":\"final_end\",\"data\":{}}\n",
    "{\"event\":\"completed\"}\n",
    "event: final_delta\n",
    "data: {\"text\":\"z\"}\n\n",
    "\"}}\n",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\u4e2d",
    "\\ud83d",
    ":",
    ",",
    "null",
    "1.5e3",
    "'",
];
