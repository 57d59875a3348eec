//! Text around an answer: whether the answer is quoted, stands in a code span, or in the middle of a sentence. Such an answer is an
//! example, and does not end the action.

/// Text outside of objects, as far as it tells where the next object stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surroundings {
    /// First and last characters of the line that are not blank.
    first: Option<char>,
    last: Option<char>,
    /// Backticks of the run under way, and whether nothing but blanks stands before it on its line.
    run: usize,
    run_leads: bool,
    /// Backticks of the run that is open in this paragraph.
    open: usize,
    /// An object that may prove to be an example, and the one before it.
    suspect: Option<Suspect>,
    earlier: Option<Suspect>,
}

/// An object of which the text behind it decides.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    /// Backticks that would close the span it stands in; 0 if it stands in none.
    open: usize,
    /// Whether it stands behind the beginning of a sentence.
    sentence: bool,
}

/// Signs behind which an object does not go on with a sentence.
const ENDS: &[char] = &[':', '：', '.', '。', '!', '！', '?', '？', '…', '`', '~', '}', ']', '*', '>', '|'];

/// Backticks that begin a fence at the start of a line.
const FENCE: usize = 3;

impl Surroundings {
    /// Text outside of objects. Whether it makes an example of the answer before it.
    pub(super) fn text(&mut self, text: &str) -> bool {
        let mut example = false;
        for c in text.chars() {
            example |= self.character(c);
        }
        example
    }

    fn character(&mut self, c: char) -> bool {
        if c == '`' {
            if self.run == 0 {
                self.run_leads = self.first.is_none();
            }
            self.run += 1;
            return false;
        }
        let mut example = self.end_run();
        if c == '\n' {
            let blank = self.first.is_none();
            (self.first, self.last) = (None, None);
            if let Some(suspect) = &mut self.suspect {
                suspect.sentence = false;
            }
            if blank {
                // A span does not go on behind a blank line.
                self.open = 0;
                self.suspect = None;
            }
        } else if !c.is_whitespace() {
            if let Some(suspect) = &mut self.suspect
                && std::mem::take(&mut suspect.sentence)
            {
                example |= c.is_alphanumeric() || matches!(c, ',' | '，' | ';' | '；');
            }
            self.first.get_or_insert(c);
            self.last = Some(c);
        }
        example
    }

    /// A run of backticks ends. Whether it closes the span that the answer stands in.
    fn end_run(&mut self) -> bool {
        let run = std::mem::take(&mut self.run);
        if run == 0 {
            return false;
        }
        if self.run_leads && run >= FENCE {
            self.open = 0;
            return false;
        }
        (self.first, self.last) = (self.first.or(Some('`')), Some('`'));
        let closes = self.suspect.is_some_and(|suspect| suspect.open == run);
        if self.open == run {
            self.open = 0;
        } else if self.open == 0 {
            self.open = run;
        }
        if closes {
            self.suspect = None;
        }
        closes
    }

    /// An object begins. Whether it is quoted.
    pub(super) fn object(&mut self) -> bool {
        self.end_run();
        let sentence = self.last.is_some_and(|last| !ENDS.contains(&last));
        let suspect = Suspect { open: self.open, sentence };
        let quoted = self.first == Some('>');
        self.earlier = self.suspect.take();
        self.suspect = (sentence || self.open > 0).then_some(suspect);
        (self.first, self.last) = (self.first.or(Some('{')), Some('}'));
        quoted
    }

    /// The object was no answer: what comes tells of the one before it.
    pub(super) fn forget(&mut self) {
        self.suspect = self.earlier.take();
    }

    /// The reply ends: a span may close right here.
    pub(super) fn end(&mut self) -> bool {
        self.end_run()
    }
}
