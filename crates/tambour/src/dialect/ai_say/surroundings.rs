//! Detects answers that are quoted, in a code span or in the middle of a sentence. Such an answer is an
//! example and does not end the action.

/// State of the text outside objects that decides whether an object is an example.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surroundings {
    /// First and last non-blank characters of the line.
    first: Option<char>,
    last: Option<char>,
    /// Backticks of the current run.
    run: usize,
    /// Set if only blanks precede the run on its line.
    run_leads: bool,
    /// Backticks of the run that is open in this paragraph.
    open: usize,
    /// An object that may turn out to be an example, and the one before it.
    suspect: Option<Suspect>,
    earlier: Option<Suspect>,
}

/// An object that is judged by the text after it.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    /// Backticks that would close the code span around it; 0 if it is in none.
    open: usize,
    /// Set if it follows the beginning of a sentence.
    sentence: bool,
}

/// Characters after which an object does not continue a sentence.
const ENDS: &[char] = &[':', '：', '.', '。', '!', '！', '?', '？', '…', '`', '~', '}', ']', '*', '>', '|'];

/// Backticks that begin a fence at the start of a line.
const FENCE: usize = 3;

impl Surroundings {
    /// Reads text outside objects. Returns true if it makes the answer before it an example.
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
                // A code span ends at a blank line.
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

    /// Ends a run of backticks. Returns true if it closes the code span around the answer.
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

    /// Begins an object. Returns true if it is quoted.
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

    /// Discards the object, which was not an answer: later text is about the one before it.
    pub(super) fn forget(&mut self) {
        self.suspect = self.earlier.take();
    }

    /// Ends the reply. Returns true if a code span closes right here.
    pub(super) fn end(&mut self) -> bool {
        self.end_run()
    }
}
