//! Texts with marker words: prose, Markdown, search queries.

use super::{WordNumber, marker};
use crate::random::RandomSource;

/// Source of marker words, each used once (until all 10,000 are used), and of texts with them.
#[derive(Clone, Debug)]
pub struct WordSource {
    /// Number of the next marker word.
    next_number: WordNumber,
    random: RandomSource,
    /// Factor by which texts of several lines are longer than usual.
    length_factor: usize,
}

/// Texts between marker words.
const FILLERS: &[&str] = &[
    "the plan is",
    "and then",
    "計劃如下，",
    "先看目标。",
    "a < b",
    "1 > 0",
    "it's",
    "AT&T",
    "e.g.",
    "😀",
    "fine,",
    "x_y",
    "50%",
    "(so)",
    "[note]",
    "{n}",
    "\u{3000}段落",
];

impl WordSource {
    /// Creates a source from a generator.
    #[must_use]
    pub fn new(random: RandomSource) -> WordSource {
        WordSource { next_number: 1, random, length_factor: 1 }
    }

    /// Makes texts of several lines longer by a factor.
    #[must_use]
    pub fn with_length_factor(mut self, factor: usize) -> WordSource {
        self.length_factor = factor;
        self
    }

    /// Generator of random numbers.
    pub fn random(&mut self) -> &mut RandomSource {
        &mut self.random
    }

    /// Draws true with a chance of one in `count`.
    pub fn draw_one_in(&mut self, count: usize) -> bool {
        self.random.below(count) == 0
    }

    /// Draws a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.random.below(end)
    }

    /// Picks one of `items`.
    pub fn pick(&mut self, items: &[&'static str]) -> &'static str {
        self.random.pick::<&'static str>(items)
    }

    /// Makes the next marker word.
    pub fn word(&mut self) -> String {
        let word = marker(self.next_number);
        self.next_number = (self.next_number + 1) % 10_000;
        word
    }

    /// Makes one line of plain text, for a title, a summary or a field.
    pub fn text_line(&mut self) -> String {
        let mut text = self.word();
        for _ in 0..self.random.below(3) {
            text.push(' ');
            text.push_str(if self.draw_one_in(2) { self.random.pick::<&str>(FILLERS) } else { "and" });
            if self.draw_one_in(2) {
                text.push(' ');
                text.push_str(&self.word());
            }
        }
        text
    }

    /// Makes a search query.
    pub fn query(&mut self) -> String {
        match self.random.below(6) {
            0 => format!("{} {}", self.word(), self.word()),
            1 => format!("{} --> b", self.word()),
            2 => format!("训练 {}", self.word()),
            // Longer than 80 characters.
            3 if self.draw_one_in(4) => format!("{}{} {}", self.word(), " long".repeat(15), self.word()),
            4 if self.draw_one_in(4) => format!("{} mail a@b.com", self.word()),
            _ => format!("how to {}", self.word()),
        }
    }

    /// Makes plain text of one or more lines.
    pub fn prose(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.length_factor * (1 + self.random.below(3)) {
            if !text.is_empty() {
                text.push_str(self.pick(&[" ", "\n", "\n\n", ". "]));
            }
            text.push_str(&self.text_line());
        }
        text
    }

    /// Makes an answer about formats, with samples of code and XML, which are not structure of the reply
    /// (R-91, R-92).
    pub fn format_answer(&mut self) -> String {
        let mut text = self.text_line();
        for _ in 0..1 + self.random.below(3) {
            text.push_str(self.pick(&["\n", "\n\n"]));
            let sample = self.format_sample();
            text.push_str(&sample);
            text.push('\n');
            text.push_str(&self.text_line());
        }
        text
    }

    /// Makes a sample of a format, or a sentence about one.
    fn format_sample(&mut self) -> String {
        let (a, b) = (self.word(), self.word());
        match self.random.below(20) {
            0 => format!("ThinkingML uses <thinking>, <phase> and <final> tags, {a} {b}."),
            1 => format!(
                "```ts\ninterface Round {{\n  should_exit: boolean; // {a}\n  response: {b};\n}}\n```"
            ),
            2 => format!("interface Round {{\n  assessment: {a};\n  should_exit: boolean; // {b}\n}}"),
            3 => format!(
                "```python\nplan = {{\"thought\": \"{a}\", \"response_mode\": \"GENERAL_CHAT\"}} # {b}\n```"
            ),
            4 => format!("plan = {{\"thought\": \"{a}\", \"response_mode\": \"GENERAL_CHAT\"}} # {b}"),
            5 => format!("<project>\n  <build>\n    <final>{a}</final>\n  </build>\n  {b}\n</project>"),
            6 => format!("<project><name>{a}</name><build><final>{b}</final></build></project>"),
            7 => format!("<Final>{a}</Final>\n{b}"),
            8 => format!(
                "event: phase_start\ndata: {{\"id\":1,\"title\":\"{a}\"}}\n\nevent: final_delta\ndata: {{\"text\":\"{b}\"}}"
            ),
            9 => format!("{{\"event\":\"status\",\"data\":{{\"text\":\"{a}\"}}}} {b}"),
            10 => format!("{{\"assessment\":\"{a}\",\"response\":\"{b}\"}}"),
            11 => format!("Models emit <think> before they answer, {a}. That is all, {b}."),
            12 => format!("<analysis>\n  <item>{a}</item>\n  <item>{b}</item>\n</analysis>"),
            13 => format!("<thought level=\"2\">{a}</thought> {b}"),
            14 => format!("Use `<final>` for {a} and `<think>` for {b}."),
            15 => format!("```xml\n<root>\n<thinking>{a}</thinking>\n<final>{b}</final>\n</root>\n```"),
            16 => format!("```json\n{{\"thought\": \"{a}\", \"tool_calls\": [\"{b}\"]}}\n```"),
            17 => format!("return (\n  <Card>\n    <content>{a}</content>\n    {b}\n  </Card>\n);"),
            18 => format!("A mark such as <|im_end|> or [THINK] ends {a}, and {b} begins."),
            _ => format!("The <think>{a}</think> of a model is not shown, {b}."),
        }
    }

    /// Makes Markdown of an answer: paragraphs, lists, code, quotes, links, tags.
    pub fn markdown(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.length_factor * (1 + self.random.below(4)) {
            if !text.is_empty() {
                text.push_str(self.pick(&["\n", "\n\n"]));
            }
            let block = self.markdown_block();
            text.push_str(&block);
        }
        text
    }

    fn markdown_block(&mut self) -> String {
        match self.random.below(14) {
            0 => format!("# {}", self.text_line()),
            1 => format!("- {}\n- {}", self.text_line(), self.word()),
            2 => format!("1. {}\n2. {}", self.word(), self.text_line()),
            3 => format!("> {}", self.text_line()),
            4 => format!("use `{}` and `{}`.", self.word(), self.text_line()),
            5 => {
                let fence = self.pick(&["```", "~~~", "````"]);
                let language = self.pick(&["", "rust", "json", "xml title=x"]);
                let code = self.code_lines();
                format!("{fence}{language}\n{code}\n{fence}")
            }
            6 => format!("| {} | b |\n|---|---|\n| c | {} |", self.word(), self.word()),
            7 => format!(
                "[{}](https://{}.example) <https://{}.example>",
                self.text_line(),
                self.word(),
                self.word()
            ),
            8 => format!("see <b>{}</b> and <br/> {}", self.word(), self.word()),
            9 => format!("a Vec<{}> here &lt;{}&gt; &amp; {}", self.word(), self.word(), self.word()),
            10 => format!("{} <!-- {} --> {}", self.word(), self.text_line(), self.word()),
            _ => self.prose(),
        }
    }

    /// Makes lines of code.
    fn code_lines(&mut self) -> String {
        match self.random.below(5) {
            0 => format!("let {}: Vec<{}> = {{}};", self.word(), self.word()),
            1 => format!("{{\"{}\": \"{}\"}}", self.word(), self.word()),
            2 => format!("<phase id=\"1\"><title>{}</title></phase>", self.word()),
            3 => format!("// {}\n`{}` </div>", self.word(), self.word()),
            _ => format!("{}\n\n    {}", self.word(), self.word()),
        }
    }
}
