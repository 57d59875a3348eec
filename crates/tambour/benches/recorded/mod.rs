//! Texts of the recorded replies of `fixtures/recorded`, joined to a size.
//!
//! Each reply is read in its dialect, so that the texts contain no tags of the dialect. Texts of phases and
//! thoughts are reasoning, the others are answers. Code is the fenced blocks of the replies as received.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use tambour::event::Sink;
use tambour::{Event, Finding, InputEnd, Options, Pipeline};

/// Recorded replies of each dialect, one per line.
const RECORDED: [(&str, &str); 5] = [
    ("ai_say", include_str!("../../../../fixtures/recorded/ai_say.jsonl")),
    ("aiplan", include_str!("../../../../fixtures/recorded/aiplan.jsonl")),
    ("filament", include_str!("../../../../fixtures/recorded/filament.jsonl")),
    ("jsonseq", include_str!("../../../../fixtures/recorded/jsonseq.jsonl")),
    ("thinkingml", include_str!("../../../../fixtures/recorded/thinkingml.jsonl")),
];

/// Tags that have a meaning in a dialect; a text that contains one is left out.
const DIALECT_TAGS: [&str; 8] =
    ["think", "phase", "final", "serp", "thought", "content", "variable_update", "tool_call"];

/// Kind of text that models write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextKind {
    English,
    Chinese,
    Code,
    /// Half Chinese, a quarter English, a quarter code.
    Mixed,
}

/// Distinct texts of the recorded replies, by kind.
#[derive(Default)]
struct RecordedTexts {
    english: BTreeSet<String>,
    chinese: BTreeSet<String>,
    code: BTreeSet<String>,
}

static ANSWERS: LazyLock<RecordedTexts> = LazyLock::new(|| read_recorded(|collector| collector.answer));
static REASONING: LazyLock<RecordedTexts> = LazyLock::new(|| read_recorded(|collector| collector.reasoning));

/// Makes an answer of about `size` bytes.
pub(crate) fn make_answer(kind: TextKind, size: usize) -> String {
    ANSWERS.join(kind, size)
}

/// Makes reasoning of about `size` bytes. The reasoning that goes with code is English.
pub(crate) fn make_reasoning(kind: TextKind, size: usize) -> String {
    REASONING.join(if kind == TextKind::Code { TextKind::English } else { kind }, size)
}

impl RecordedTexts {
    /// Joins texts of a kind to `size` bytes, starting again from the first when all are used.
    fn join(&self, kind: TextKind, size: usize) -> String {
        let sources: &[&BTreeSet<String>] = match kind {
            TextKind::English => &[&self.english],
            TextKind::Chinese => &[&self.chinese],
            TextKind::Code => &[&self.code],
            // Chinese is listed twice, so that it makes up half of the bytes.
            TextKind::Mixed => &[&self.chinese, &self.english, &self.chinese, &self.code],
        };
        let mut parts: Vec<_> = sources.iter().map(|texts| (texts.iter().cycle(), 0)).collect();
        let mut joined = String::with_capacity(size);
        while joined.len() < size {
            // Picks the part with the fewest bytes so far.
            let (texts, bytes) = parts.iter_mut().min_by_key(|(_, bytes)| *bytes).expect("a part");
            let text = texts.next().expect("a recorded text");
            *bytes += text.len();
            joined.push_str(text);
        }
        let end = joined.floor_char_boundary(size);
        joined.truncate(end);
        joined.push('\n');
        joined
    }

    /// Adds a text to the texts of its language, unless it is short, contains tags or mixes the languages.
    fn insert(&mut self, text: &str) {
        let text = text.trim();
        let has_tag = DIALECT_TAGS
            .iter()
            .any(|tag| text.contains(&format!("<{tag}")) || text.contains(&format!("</{tag}")));
        if text.len() < 20 || has_tag {
            return;
        }
        let non_ascii_percent = 100 * text.bytes().filter(|byte| !byte.is_ascii()).count() / text.len();
        let texts = match non_ascii_percent {
            0..5 => &mut self.english,
            50.. => &mut self.chinese,
            _ => return,
        };
        texts.insert(format!("{text}\n\n"));
    }

    /// Adds the closed fenced blocks of a reply.
    fn insert_code(&mut self, reply: &str) {
        let mut parts = reply.split("```");
        parts.next();
        while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
            if block.contains('\n') && !DIALECT_TAGS.iter().any(|tag| block.contains(&format!("<{tag}"))) {
                self.code.insert(format!("```{}\n```\n\n", block.trim_end()));
            }
        }
    }
}

/// Sink that collects the texts of a reply.
#[derive(Default)]
struct TextCollector {
    answer: String,
    reasoning: String,
}

impl Sink for TextCollector {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::FinalDelta { text } => self.answer.push_str(&text),
            Event::PhaseDelta { text, .. } => self.reasoning.push_str(&text),
            _ => {}
        }
    }

    fn finding(&mut self, _: Finding) {}
}

/// Reads all recorded replies and collects the text that `text_of` selects from each, and all code.
fn read_recorded(text_of: fn(TextCollector) -> String) -> RecordedTexts {
    let mut texts = RecordedTexts::default();
    let options = Options::default();
    for (dialect, lines) in RECORDED {
        for line in lines.lines() {
            let recorded: serde_json::Value = serde_json::from_str(line).expect("a recorded reply");
            let chunks = recorded["chunks"].as_array().expect("chunks");
            let reply: String = chunks.iter().filter_map(serde_json::Value::as_str).collect();
            let mut collector = TextCollector::default();
            // A dialect that is not compiled in adds no text.
            let Ok(mut pipeline) = Pipeline::new(dialect, &options) else { continue };
            pipeline.push(reply.as_bytes(), &mut collector);
            pipeline.finish(&InputEnd::stop(), &mut collector);
            texts.insert(&text_of(collector));
            texts.insert_code(&reply);
        }
    }
    texts
}
