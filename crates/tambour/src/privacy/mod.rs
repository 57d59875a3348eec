//! Detection of sensitive data in text: the one check behind T-048, J-004 and all other outgoing data
//! (X-008).
//!
//! The detectors are linear scanners for short texts in Chinese and English. They match text that has the
//! form of personal data (R-11). A plain number, date, version or place name alone does not count. The
//! treatment of matches does not belong here.

mod address;
mod check_digit;
mod digits;
mod email;
mod folded_text;
mod ip;
mod key;
mod phone;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use folded_text::FoldedText;

/// Detects one kind of sensitive data.
pub trait Detector: Send + Sync {
    /// Lower-case word for the kind, such as `email`. It appears in findings and replaces the data in
    /// generalised text.
    fn kind(&self) -> &'static str;

    /// Calls `found` for each match with its byte range in [`FoldedText::raw`]. Should take linear time.
    fn find(&self, text: &FoldedText<'_>, found: &mut dyn FnMut(Range<usize>));
}

/// One match of sensitive data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveMatch {
    /// Kind, such as `phone`.
    pub kind: &'static str,
    /// Byte range in the text.
    pub range: Range<usize>,
}

/// Set of detectors.
///
/// The default set detects `email`, `phone`, `ip`, `address`, `national_id`, `bank_card` and `access_key`.
///
/// ```
/// use tambour::privacy::DetectorSet;
///
/// let privacy = DetectorSet::default();
/// assert_eq!(privacy.scan("mail a@b.com")[0].kind, "email");
/// assert_eq!(privacy.generalise("mail a@b.com"), "mail [email]");
/// assert!(privacy.scan("5x5 80kg").is_empty());
/// ```
#[derive(Clone)]
pub struct DetectorSet {
    detectors: Vec<Arc<dyn Detector>>,
}

impl Default for DetectorSet {
    fn default() -> DetectorSet {
        // The order matters: of two detectors that match the same text, the one added first gives its kind.
        // So an identity number is not taken for a phone number.
        DetectorSet::empty()
            .with_detector(key::AccessKeyDetector)
            .with_detector(email::EmailDetector)
            .with_detector(check_digit::NationalIdDetector)
            .with_detector(check_digit::BankCardDetector)
            .with_detector(ip::IpDetector)
            .with_detector(address::AddressDetector)
            .with_detector(phone::PhoneDetector)
    }
}

impl DetectorSet {
    /// Creates an empty set.
    #[must_use]
    pub fn empty() -> DetectorSet {
        DetectorSet { detectors: Vec::new() }
    }

    /// Adds a detector.
    #[must_use]
    pub fn with_detector(mut self, detector: impl Detector + 'static) -> DetectorSet {
        self.detectors.push(Arc::new(detector));
        self
    }

    /// Sensitive data in `text`, in order and without overlaps.
    #[must_use]
    pub fn scan(&self, text: &str) -> Vec<SensitiveMatch> {
        let text = FoldedText::new(text);
        let mut candidates: Vec<(usize, SensitiveMatch)> = Vec::new();
        for (rank, detector) in self.detectors.iter().enumerate() {
            let kind = detector.kind();
            detector.find(&text, &mut |range| {
                // Detectors may be third-party: an invalid range is ignored.
                if !range.is_empty() && text.raw().get(range.clone()).is_some() {
                    candidates.push((rank, SensitiveMatch { kind, range }));
                }
            });
        }
        candidates.sort_by_key(|(rank, candidate)| (candidate.range.start, *rank));
        let mut matches: Vec<(usize, SensitiveMatch)> = Vec::new();
        for (rank, candidate) in candidates {
            match matches.last_mut() {
                // Overlapping matches are merged; the detector that was added first gives the kind.
                Some((last_rank, last)) if candidate.range.start < last.range.end => {
                    last.range.end = last.range.end.max(candidate.range.end);
                    if rank < *last_rank {
                        (*last_rank, last.kind) = (rank, candidate.kind);
                    }
                }
                _ => matches.push((rank, candidate)),
            }
        }
        matches.into_iter().map(|(_, found)| found).collect()
    }

    /// First match in `text`.
    #[doc(hidden)]
    #[must_use]
    pub fn find_first(&self, text: &str) -> Option<SensitiveMatch> {
        self.scan(text).into_iter().next()
    }

    /// Replaces each match in `text` by its kind, such as `[email]`.
    #[must_use]
    pub fn generalise(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for found in self.scan(text) {
            out.push_str(&text[from..found.range.start]);
            out.push('[');
            out.push_str(found.kind);
            out.push(']');
            from = found.range.end;
        }
        out.push_str(&text[from..]);
        out
    }
}

impl fmt::Debug for DetectorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.detectors.iter().map(|detector| detector.kind())).finish()
    }
}
