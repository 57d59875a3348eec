//! Detector of street addresses in common Chinese and English forms. A place name alone is no
//! address.

mod chinese;
mod english;

use std::ops::Range;

use super::Detector;
use super::folded_text::FoldedText;

/// Detects a road or a housing estate with a number, or a post box.
pub(super) struct AddressDetector;

impl Detector for AddressDetector {
    fn kind(&self) -> &'static str {
        "address"
    }

    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>)) {
        chinese::find(text, found);
        english::find(text, found);
    }
}

/// Returns whether `c` is a Chinese character.
fn is_han(c: Option<char>) -> bool {
    c.is_some_and(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c) || ('\u{3400}'..='\u{4DBF}').contains(&c))
}
