//! Detection of examples: answers that are quoted, in a code span or in the middle of a sentence. An example
//! never ends the dialogue's current action.

/// State of the text outside objects that decides whether an object is an example.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExampleDetector {
    /// First and last non-blank characters of the line.
    first_char: Option<char>,
    last_char: Option<char>,
    /// Length of the current run of backticks.
    backtick_run: usize,
    /// Set if only white space precedes that run on its line.
    is_run_leading: bool,
    /// Length of the run of backticks that opened a code span in this paragraph; 0 if none is open.
    open_backticks: usize,
    /// An object that may turn out to be an example, and the one before it.
    last_suspect: Option<ExampleSuspect>,
    previous_suspect: Option<ExampleSuspect>,
}

/// An object that is judged by the text after it.
#[derive(Clone, Copy, Debug)]
struct ExampleSuspect {
    /// Length of the run of backticks that would close the code span around it; 0 if it is in none.
    span_backticks: usize,
    /// Set if it follows the beginning of a sentence.
    is_in_sentence: bool,
}

/// Characters after which an object does not continue a sentence.
const SENTENCE_ENDS: &[char] =
    &[':', '：', '.', '。', '!', '！', '?', '？', '…', '`', '~', '}', ']', '*', '>', '|'];

/// Minimum number of backticks that begin a fence at the start of a line.
const FENCE_LEN: usize = 3;

impl ExampleDetector {
    /// Reads text outside objects. Returns true if the text makes the preceding answer an example.
    pub(super) fn push(&mut self, text: &str) -> bool {
        let mut is_example = false;
        for c in text.chars() {
            is_example |= self.push_char(c);
        }
        is_example
    }

    /// Reads a character. Returns true if the character makes the preceding answer an example.
    fn push_char(&mut self, c: char) -> bool {
        if c == '`' {
            if self.backtick_run == 0 {
                self.is_run_leading = self.first_char.is_none();
            }
            self.backtick_run += 1;
            return false;
        }
        let mut is_example = self.end_run();
        if c == '\n' {
            let is_blank_line = self.first_char.is_none();
            (self.first_char, self.last_char) = (None, None);
            if let Some(suspect) = &mut self.last_suspect {
                suspect.is_in_sentence = false;
            }
            if is_blank_line {
                // A code span ends at a blank line.
                self.open_backticks = 0;
                self.last_suspect = None;
            }
        } else if !c.is_whitespace() {
            if let Some(suspect) = &mut self.last_suspect
                && std::mem::take(&mut suspect.is_in_sentence)
            {
                // The sentence around the answer continues.
                is_example |= c.is_alphanumeric() || matches!(c, ',' | '，' | ';' | '；');
            }
            self.first_char.get_or_insert(c);
            self.last_char = Some(c);
        }
        is_example
    }

    /// Ends a run of backticks. Returns true if it closes the code span around the answer.
    fn end_run(&mut self) -> bool {
        let run_len = std::mem::take(&mut self.backtick_run);
        if run_len == 0 {
            return false;
        }
        if self.is_run_leading && run_len >= FENCE_LEN {
            self.open_backticks = 0;
            return false;
        }
        (self.first_char, self.last_char) = (self.first_char.or(Some('`')), Some('`'));
        let is_closing = self.last_suspect.is_some_and(|suspect| suspect.span_backticks == run_len);
        if self.open_backticks == run_len {
            self.open_backticks = 0;
        } else if self.open_backticks == 0 {
            self.open_backticks = run_len;
        }
        if is_closing {
            self.last_suspect = None;
        }
        is_closing
    }

    /// Begins an object. Returns true if it is quoted: `>` begins its line.
    pub(super) fn begin_object(&mut self) -> bool {
        self.end_run();
        let is_in_sentence = self.last_char.is_some_and(|last| !SENTENCE_ENDS.contains(&last));
        let suspect = ExampleSuspect { span_backticks: self.open_backticks, is_in_sentence };
        let is_quoted = self.first_char == Some('>');
        self.previous_suspect = self.last_suspect.take();
        self.last_suspect = (is_in_sentence || self.open_backticks > 0).then_some(suspect);
        (self.first_char, self.last_char) = (self.first_char.or(Some('{')), Some('}'));
        is_quoted
    }

    /// Discards the last object, which was not an answer: later text judges the object before it.
    pub(super) fn discard_object(&mut self) {
        self.last_suspect = self.previous_suspect.take();
    }

    /// Ends the reply. Returns true if its last characters close the code span around the answer.
    pub(super) fn finish(&mut self) -> bool {
        self.end_run()
    }
}
