//! JSON as models write it: with varying spacing and needless escapes.

use super::texts::WordSource;

/// Writer of JSON text with one style of spacing.
pub(crate) struct LooseJsonWriter<'a> {
    words: &'a mut WordSource,
    /// Spaces between a name and its value, after a comma, and inside the braces of an object.
    spaces: [&'static str; 3],
}

/// Styles of spacing, as in [`LooseJsonWriter::spaces`].
const STYLES: [[&str; 3]; 3] = [["", "", ""], [" ", " ", ""], [" ", "\n  ", "\n"]];
/// Number of styles without line breaks, which come first.
const ONE_LINE_STYLES: usize = 2;

impl<'a> LooseJsonWriter<'a> {
    /// Creates a writer with random spacing.
    pub(crate) fn new(words: &'a mut WordSource) -> LooseJsonWriter<'a> {
        let spaces = STYLES[words.below(STYLES.len())];
        LooseJsonWriter { words, spaces }
    }

    /// Creates a writer with random spacing that writes on one line.
    pub(crate) fn new_one_line(words: &'a mut WordSource) -> LooseJsonWriter<'a> {
        let spaces = STYLES[words.below(ONE_LINE_STYLES)];
        LooseJsonWriter { words, spaces }
    }

    /// Source of the words in values.
    pub(crate) fn words(&mut self) -> &mut WordSource {
        self.words
    }

    /// Writes a string.
    pub(crate) fn write_string(&mut self, text: &str) -> String {
        let mut out = String::from("\"");
        let has_needless_escapes = self.words.draw_one_in(4);
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '/' if has_needless_escapes => out.push_str("\\/"),
                '<' | '，' | '先' if has_needless_escapes => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)))
                }
                '😀' if has_needless_escapes => out.push_str("\\ud83d\\ude00"),
                c => out.push(c),
            }
        }
        out.push('"');
        out
    }

    /// Writes an object whose values are JSON text already.
    pub(crate) fn write_object(&mut self, fields: &[(&str, String)]) -> String {
        let [colon, comma, padding] = self.spaces;
        let fields: Vec<String> =
            fields.iter().map(|(name, value)| format!("\"{name}\":{colon}{value}")).collect();
        format!("{{{padding}{}{padding}}}", fields.join(&format!(",{comma}")))
    }

    /// Writes a list whose items are JSON text already.
    pub(crate) fn write_list(&mut self, items: &[String]) -> String {
        format!("[{}]", items.join(&format!(",{}", self.spaces[1])))
    }

    /// Writes a random value with words in it. A smaller `depth` allows deeper nesting; from 3 there is none.
    pub(crate) fn write_random(&mut self, depth: usize) -> String {
        match self.words.below(if depth < 3 { 6 } else { 3 }) {
            0 => {
                let line = self.words.text_line();
                self.write_string(&line)
            }
            1 => {
                let prose = self.words.prose();
                self.write_string(&prose)
            }
            2 => self.words.pick(&["1", "true", "null", "0.5"]).to_owned(),
            3 => {
                let items: Vec<String> =
                    (0..self.words.below(3)).map(|_| self.write_random(depth + 1)).collect();
                self.write_list(&items)
            }
            _ => {
                let (first, second) = (self.write_random(depth + 1), self.write_random(depth + 1));
                let name = self.words.word();
                self.write_object(&[(&name, first), ("other", second)])
            }
        }
    }
}
