//! Reading of an input in one chunk or many, and comparison of the readings.
//!
//! A pseudo-dialect is the name of an input that no pipeline reads, such as a script. Fixtures may name it in
//! place of a dialect.

use tambour::contract::{StreamCheckOptions, StreamChecker};
use tambour::event::{Sink, push_joined};
use tambour::{Event, Finding, InputEnd, Options, Pipeline};
use tambour_prompt::dialogue::check::check_all;
use tambour_prompt::dialogue::{read_ask, read_think};
use tambour_prompt::script::{ScriptProblem, load};
use tambour_prompt::template::TemplateFiles;

/// Pseudo-dialect of transcripts, which the checker reads instead of a pipeline.
pub const TRANSCRIPT: &str = "events";

/// Pseudo-dialect of dialogue scripts.
pub const SCRIPT: &str = "script";
/// Pseudo-dialect of scripts with their templates.
pub const DIALOGUE: &str = "dialogue";
/// Pseudo-dialect of `ai_ask` answers, which are read whole.
pub const ASK: &str = "ai_ask";
/// Pseudo-dialect of `ai_think` answers, which are read whole.
pub const THINK: &str = "ai_think";

/// Variables that `ai_think` answers fill in fixtures and examples.
const THINK_VARIABLES: [&str; 2] = ["mood", "reason"];

/// Returns `true` if `dialect` is a pseudo-dialect, which has findings but no events.
#[must_use]
pub fn is_judged_only(dialect: &str) -> bool {
    [TRANSCRIPT, SCRIPT, DIALOGUE, ASK, THINK].contains(&dialect)
}

/// Returns the findings of a script, or of an answer that is read whole. `dialect` is the pseudo-dialect
/// [`SCRIPT`], [`DIALOGUE`], [`ASK`] or [`THINK`].
pub fn judge(dialect: &str, text: &str, options: &Options) -> Result<Vec<Finding>, String> {
    let to_findings = |problems: &[ScriptProblem]| problems.iter().map(ScriptProblem::finding).collect();
    match dialect {
        ASK => return Ok(read_ask(text, options).1),
        THINK => return Ok(read_think(text, &THINK_VARIABLES.map(str::to_owned), options).1),
        _ => {}
    }
    let loaded_script = load(text, &options.limits);
    if dialect == SCRIPT {
        return Ok(to_findings(&loaded_script.problems));
    }
    Ok(to_findings(&check_all(loaded_script, &TemplateFiles::default(), options.texts.language)))
}

/// Input with the settings of its reading.
#[derive(Clone, Debug)]
pub struct ReadingCase<'a> {
    /// Name of the dialect or pseudo-dialect.
    pub dialect: &'a str,
    /// Options of the reading.
    pub options: &'a Options,
    /// Reasoning received separately, before the reply.
    pub reasoning: Option<&'a str>,
    /// Raw reply.
    pub input: &'a [u8],
    /// End of the reply.
    pub end: &'a InputEnd,
}

/// Division of an input into chunks.
#[derive(Clone, Copy, Debug)]
pub enum ChunkCuts<'a> {
    /// One chunk.
    Single,
    /// Chunks of this many bytes.
    Every(usize),
    /// Chunks that end at these offsets, in order.
    Offsets(&'a [usize]),
}

/// Events and findings of an input. Adjacent deltas are joined, so every division of the input into chunks
/// gives the same reading (J-038).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FixtureReading {
    /// Events in order, extension events included.
    pub events: Vec<Event<'static>>,
    /// Findings in order.
    pub findings: Vec<Finding>,
}

impl Sink for FixtureReading {
    fn event(&mut self, event: Event<'_>) {
        push_joined(&mut self.events, &event);
    }

    fn finding(&mut self, finding: Finding) {
        self.findings.push(finding);
    }
}

impl ReadingCase<'_> {
    /// Reads the input in chunks, with extension events.
    ///
    /// # Errors
    /// The dialect is unknown, or an input that is read whole is not UTF-8.
    pub fn read(&self, cuts: ChunkCuts<'_>) -> Result<FixtureReading, String> {
        self.read_with(cuts, &mut |_, _| ())
    }

    /// Like [`ReadingCase::read`]; after each chunk calls `after_chunk` with the pipeline and the number of
    /// bytes pushed so far. Pseudo-dialects have no pipeline, so `after_chunk` is not called.
    ///
    /// # Errors
    /// The dialect is unknown, or an input that is read whole is not UTF-8.
    pub fn read_with(
        &self,
        cuts: ChunkCuts<'_>,
        after_chunk: &mut dyn FnMut(&Pipeline, usize),
    ) -> Result<FixtureReading, String> {
        if self.dialect == TRANSCRIPT {
            return Ok(self.check_transcript(cuts));
        }
        if is_judged_only(self.dialect) {
            return self.read_whole();
        }
        let pipeline = Pipeline::new(self.dialect, self.options).map_err(|error| error.to_string())?;
        let mut pipeline = pipeline.with_extensions(true);
        let mut reading = FixtureReading::default();
        if let Some(text) = self.reasoning {
            pipeline.push_reasoning(text, &mut reading);
        }
        self.for_each_chunk(cuts, &mut |chunk, pushed_len| {
            pipeline.push(chunk, &mut reading);
            after_chunk(&pipeline, pushed_len);
        });
        pipeline.finish(self.end, &mut reading);
        Ok(reading)
    }

    /// Checks a transcript.
    fn check_transcript(&self, cuts: ChunkCuts<'_>) -> FixtureReading {
        let mut check_options = StreamCheckOptions::default();
        check_options.options = self.options.clone();
        let mut checker = StreamChecker::new(check_options);
        self.for_each_chunk(cuts, &mut |chunk, _| checker.push(chunk));
        FixtureReading { events: Vec::new(), findings: checker.finish() }
    }

    /// Reads an input that does not stream.
    fn read_whole(&self) -> Result<FixtureReading, String> {
        let text = std::str::from_utf8(self.input).map_err(|error| error.to_string())?;
        Ok(FixtureReading { events: Vec::new(), findings: judge(self.dialect, text, self.options)? })
    }

    /// Calls `push` with each chunk and the number of bytes up to its end.
    fn for_each_chunk(&self, cuts: ChunkCuts<'_>, push: &mut dyn FnMut(&[u8], usize)) {
        let mut from = 0;
        let mut push_to = |end: usize| {
            push(&self.input[from..end], end);
            from = end;
        };
        match cuts {
            ChunkCuts::Single => {}
            ChunkCuts::Every(size) => {
                (1..=self.input.len() / size.max(1)).for_each(|count| push_to(count * size.max(1)))
            }
            ChunkCuts::Offsets(cuts) => cuts.iter().for_each(|&end| push_to(end)),
        }
        push_to(self.input.len());
    }

    /// Reads byte by byte and checks the number of held-back bytes after each.
    ///
    /// # Errors
    /// More bytes are held than the limits allow, or the input cannot be read.
    pub fn check_held(&self) -> Result<(), String> {
        let limits = &self.options.limits;
        // White space and one other text may be held at the same time, each up to `limits.hold`.
        let limit = limits.max_held_bytes() + 2 * limits.hold;
        let (mut max_held, mut max_at) = (0, 0);
        self.read_with(ChunkCuts::Every(1), &mut |pipeline, pushed_len| {
            if pipeline.held_bytes() > max_held {
                (max_held, max_at) = (pipeline.held_bytes(), pushed_len);
            }
        })?;
        if max_held <= limit {
            return Ok(());
        }
        Err(format!("{}: {max_held} bytes held back after byte {max_at}, {limit} allowed", self.dialect))
    }

    /// Checks that the input, cut at `cuts`, gives the reading `expected`; the error names the first difference.
    ///
    /// # Errors
    /// The readings differ, or the input cannot be read.
    pub fn check_same(&self, expected: &FixtureReading, cuts: ChunkCuts<'_>) -> Result<(), String> {
        let reading = self.read(cuts)?;
        if reading == *expected {
            return Ok(());
        }
        let events = first_difference(&expected.events, &reading.events);
        let findings = first_difference(&expected.findings, &reading.findings);
        let difference = events.or(findings).unwrap_or_default();
        Err(format!(
            "{}: {} bytes cut {cuts:?} read differently from the whole: {difference}\ninput: {:?}",
            self.dialect,
            self.input.len(),
            String::from_utf8_lossy(self.input)
        ))
    }
}

/// Describes the first difference between two lists; `None` if they are equal.
pub fn first_difference<T: PartialEq + std::fmt::Debug>(expected: &[T], found: &[T]) -> Option<String> {
    let at = expected.iter().zip(found).position(|(a, b)| a != b);
    let at = at.or((expected.len() != found.len()).then(|| expected.len().min(found.len())))?;
    let describe = |item: Option<&T>| item.map_or("nothing".to_owned(), |item| format!("{item:?}"));
    Some(format!(
        "item {at}\n  expected {}\n  found    {}",
        describe(expected.get(at)),
        describe(found.get(at))
    ))
}
