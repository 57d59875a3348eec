//! Renders a prompt to text and to role messages (F-028).

use serde::Serialize;
use serde_json::{Map, Value, json};

use tambour::error::{Error, Result};
use tambour::protocol::Registry;
use tambour::structure::Expected;
use tambour::texts::Language;
use tambour::texts::counted;
use tambour::yaml;

use super::super::jinja::{Assembly, Budget, Context, Engine, Mode, Outcome};
use super::super::lore::{Drop, Source, Timed, Wake};
use super::super::{role, tokens};
use super::cut::{Cut, What, cut};
use super::escape::Boundaries;
use super::lore::{Active, lines};
use super::note::{self, Note};
use super::pieces::{Maker, Piece};
use super::{Body, Priority, Skein};

/// Options for rendering a prompt.
#[non_exhaustive]
pub struct RenderOptions<'a> {
    /// Engine for the templates; a new lenient one if `None`. Reusing an engine reuses its compiled
    /// templates.
    pub engine: Option<&'a Engine>,
    /// Known protocols; those of the library if `None`.
    pub registry: Option<&'a Registry>,
    /// Language of the protocol instructions.
    pub language: Language,
    /// Adds protocol instructions even without a `protocols` slot.
    pub instructions: bool,
    /// Counts the tokens of a text.
    pub count: &'a dyn Fn(&str) -> usize,
    /// Most tokens of the prompt; overrides the limit of the prompt itself.
    pub max_context: Option<usize>,
    /// Timed effects of world info from earlier turns.
    pub timed: Timed,
    /// Seed of random choices if the context has no `seed`.
    pub chance: u64,
    /// Also counts the tokens of each part.
    pub itemised: bool,
    /// Budget for all templates together, and their stop condition; the engine's limits if `None`.
    pub budget: Option<Budget>,
}

impl Default for RenderOptions<'_> {
    fn default() -> Self {
        RenderOptions {
            engine: None,
            registry: None,
            language: Language::En,
            instructions: false,
            count: &tokens::estimate,
            max_context: None,
            timed: Timed::default(),
            chance: 0,
            itemised: false,
            budget: None,
        }
    }
}

/// A message for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Role: `system`, `user`, `assistant`, or a role of the history.
    pub role: String,
    /// Text.
    pub content: String,
}

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// Identity of the part.
    #[serde(flatten)]
    pub what: What,
    /// Priority of the part.
    pub priority: Priority,
    /// Tokens of the part. The counts of all parts do not add up exactly to the tokens of the prompt.
    pub tokens: usize,
    /// True if the part was dropped because the prompt was too long.
    pub dropped: bool,
}

/// An active world info entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct WokenEntry {
    /// Number of its block, from 1.
    pub number: usize,
    /// Title of the entry.
    pub title: String,
    /// Cause of its activation.
    #[serde(flatten)]
    pub wake: Wake,
}

/// A world info entry that matched but is not active.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DroppedEntry {
    /// Number of its block, from 1.
    pub number: usize,
    /// Title of the entry.
    pub title: String,
    /// Reason.
    pub why: Drop,
}

/// A rendered prompt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rendered {
    /// Complete prompt as text.
    pub text: String,
    /// Complete prompt as messages; everything outside of role blocks is the system message.
    pub messages: Vec<Message>,
    /// Tokens of the text.
    pub tokens: usize,
    /// Parts that were dropped because the prompt was too long, in order of removal.
    pub dropped: Vec<Cut>,
    /// True if the prompt is still too long although nothing more can be dropped.
    pub over: bool,
    /// Expected structure of the reply.
    pub expected: Option<Expected>,
    /// Parts in order, if they were counted ([`RenderOptions::itemised`]).
    pub parts: Vec<Part>,
    /// Titles of the active world info, in the order of the blocks.
    pub lore: Vec<String>,
    /// Active world info with its causes, in the same order.
    pub lore_woken: Vec<WokenEntry>,
    /// World info that matched but is not active.
    pub lore_dropped: Vec<DroppedEntry>,
    /// Timed effects of world info, for the next turn.
    pub timed: Timed,
    /// Warnings and effects of the templates.
    pub outcome: Outcome,
    /// Other warnings.
    pub warnings: Vec<String>,
}

impl Skein {
    /// Renders the prompt. `context` is an object with the variables of F-020; the prompt's own `metadata`
    /// supplies missing ones.
    ///
    /// # Errors
    /// The context has another form, or a template does not compile or exceeds a limit; the error names
    /// block, line and column.
    pub fn render(&self, context: &Value, options: &RenderOptions<'_>) -> Result<Rendered> {
        let Value::Object(given) = context else { return Err(Error::invalid("a context is a JSON object")) };
        let mut values = self.variables(given);
        let noticed = role::normalise(&mut values)?;
        let lines = lines(&values);
        let own = Engine::new(Mode::Lenient);
        let engine = options.engine.unwrap_or(&own);
        let budget = options.budget.clone().unwrap_or_else(|| Budget::new(engine.limits()));
        let read = |bytes| budget.read(bytes);
        let mut first = Outcome::default();
        if note::has_macros(&values) {
            let context = Context::new(values.clone())?;
            let mut assembly = Assembly::within(engine, context, options.chance, budget.clone());
            first = note::rendered(&mut values, &mut assembly)?;
        }
        let sources = self.sources(&values, engine, &budget, options.chance)?;
        let active = self.active(&values, (&lines, &sources), &options.timed, options.count, &read)?;
        let note = Note::new(self, &values, &active);
        self.outlets(&active, &mut values);
        let registry = options.registry.cloned().unwrap_or_default();
        let (expected, protocol_warnings) = self.expected(&registry)?;
        let mut unknown = self.protocols();
        unknown.retain(|name| registry.get(name).is_none());
        if engine.mode() == Mode::Strict
            && let Some(warning) =
                protocol_warnings.iter().find(|warning| unknown.contains(&warning.protocol))
        {
            return Err(Error::invalid(warning.message.clone()));
        }
        let boundaries = Boundaries::new(self.blocks.iter().map(|block| block.tag.as_str()));
        let before = self.world_info(&mut values, &active, &boundaries, engine, &budget, options.chance)?;
        let mut assembly = Assembly::within(engine, Context::new(values)?, options.chance, budget);
        let mut maker = Maker {
            protocols: told(&self.protocols(), &registry, options.language),
            instructions: options.instructions,
            lines: &lines,
            note,
            unknown: &unknown,
            ..Maker::new(self, &mut assembly, &boundaries, &active)
        };
        maker.run()?;
        let Maker { mut pieces, mut warnings, .. } = maker;
        warnings.splice(0..0, noticed);
        let max = options.max_context.or(self.max_context);
        let dropped = max.map(|max| cut(&mut pieces, max, options.count)).unwrap_or_default();
        let text = text_in(&pieces, &boundaries);
        let tokens = (options.count)(&text);
        let over = max.is_some_and(|max| tokens > max);
        if over {
            warnings.push(format!(
                "the prompt has {} and may have {}; nothing more can be left out",
                counted(tokens, "token"),
                max.unwrap_or_default()
            ));
        }
        warnings.extend(protocol_warnings.into_iter().map(|warning| warning.message));
        warnings.extend(active.found.warnings.iter().cloned());
        let number = |entry: usize| active.blocks[entry] + 1;
        let title = |entry: usize| {
            let block = &self.blocks[active.blocks[entry]];
            let title =
                block.lore.as_ref().map(|entry| entry.title.clone()).filter(|title| !title.is_empty());
            title.unwrap_or_else(|| block.tag.clone())
        };
        let woken = active.found.active.iter().zip(&active.found.woken);
        let woken = woken.map(|(&entry, wake)| WokenEntry {
            number: number(entry),
            title: title(entry),
            wake: wake.clone(),
        });
        let lost = active.found.dropped.iter().map(|dropped| DroppedEntry {
            number: number(dropped.entry),
            title: title(dropped.entry),
            why: dropped.why,
        });
        let part = |piece: &Piece| Part {
            what: piece.what.clone(),
            priority: piece.priority,
            tokens: (options.count)(&text_alone(piece)),
            dropped: piece.dropped,
        };
        Ok(Rendered {
            parts: if options.itemised { pieces.iter().map(part).collect() } else { Vec::new() },
            lore_woken: woken.collect(),
            lore_dropped: lost.collect(),
            messages: messages(&pieces),
            text,
            tokens,
            dropped,
            over,
            expected,
            lore: active.found.active.iter().map(|&entry| title(entry)).collect(),
            timed: active.found.timed,
            outcome: joined(first, joined(before, assembly.outcome())),
            warnings,
        })
    }

    /// Renders the texts of user and character that entries search, as they appear in the prompt.
    fn sources(
        &self,
        values: &Map<String, Value>,
        engine: &Engine,
        budget: &Budget,
        chance: u64,
    ) -> Result<Vec<(Source, String)>> {
        let entries = || self.blocks.iter().filter_map(|block| block.lore.as_ref());
        let wanted =
            Source::ALL.into_iter().filter(|source| entries().any(|entry| entry.sources.contains(source)));
        let wanted: Vec<Source> = wanted.collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        // Effects and warnings of these renderings are ignored; they occur again where the texts are printed.
        let mut assembly = Assembly::within(engine, Context::new(values.clone())?, chance, budget.clone());
        let text = |source: Source| {
            let (name, template) = match source {
                Source::Persona => ("persona", "{{ user.persona }}"),
                Source::Description => ("description", "{{ char.description }}"),
                Source::Personality => ("personality", "{{ char.personality }}"),
                Source::DepthPrompt => ("depth_prompt", "{{ char.depth_prompt }}"),
                Source::Scenario => ("scenario", "{{ char.scenario }}"),
                Source::CreatorNotes => ("creator_notes", "{{ char.creator_notes }}"),
            };
            Ok((source, assembly.render(name, template)?))
        };
        wanted.into_iter().map(text).collect()
    }

    /// Renders the world info that templates print through variables and adds it to the variables. Later
    /// templates see variables that it sets.
    fn world_info(
        &self,
        values: &mut Map<String, Value>,
        active: &Active,
        boundaries: &Boundaries,
        engine: &Engine,
        budget: &Budget,
        chance: u64,
    ) -> Result<Outcome> {
        let mut assembly = Assembly::within(engine, Context::new(values.clone())?, chance, budget.clone());
        let mut variables = Maker::new(self, &mut assembly, boundaries, active).variables()?;
        if variables.is_empty() {
            return Ok(Outcome::default());
        }
        note::around(values, &mut variables);
        let outcome = assembly.outcome();
        values.extend(variables);
        for (name, value) in &outcome.local {
            values.entry(name.clone()).or_insert_with(|| value.clone());
        }
        if !outcome.effects.is_empty() {
            values.insert("global_state".into(), outcome.global.clone().into());
        }
        Ok(outcome)
    }

    /// Returns the variables for the templates. A person given only by name keeps the fields that the prompt
    /// has for it.
    fn variables(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let mut values = given.clone();
        for (key, value) in &self.metadata {
            match (values.get(key), value) {
                (Some(Value::String(name)), Value::Object(own))
                    if matches!(key.as_str(), "user" | "char") =>
                {
                    let mut person = own.clone();
                    person.insert("name".into(), name.clone().into());
                    values.insert(key.clone(), person.into());
                }
                (Some(Value::Object(said)), Value::Object(own))
                    if matches!(key.as_str(), "user" | "char" | "config") =>
                {
                    let mut person = own.clone();
                    person.extend(said.iter().map(|(key, value)| (key.clone(), value.clone())));
                    values.insert(key.clone(), person.into());
                }
                (Some(value), _) if !value.is_null() => {}
                _ => {
                    values.insert(key.clone(), value.clone());
                }
            }
        }
        values
    }

    /// Adds active world info to outlets of the context, as templates that are rendered when they are
    /// printed.
    fn outlets(&self, active: &Active, values: &mut Map<String, Value>) {
        if active.found.slots.outlets.is_empty() {
            return;
        }
        let outlets = values.entry("outlets").or_insert_with(|| json!({}));
        let Value::Object(outlets) = outlets else { return };
        for (name, entries) in &active.found.slots.outlets {
            let texts = entries.iter().map(|&entry| match &self.blocks[active.blocks[entry]].body {
                Body::Text(text) => text.trim_matches(['\n', '\r']).to_owned(),
                Body::Data(value) => yaml::print(value).trim_end().to_owned(),
                Body::Slot(_) => String::new(),
            });
            let mut all: Vec<Value> = match outlets.get(name) {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(texts)) => texts.clone(),
                Some(text) => vec![text.clone()],
            };
            all.extend(texts.map(Value::from));
            outlets.insert(name.clone(), all.into());
        }
    }
}

/// Combines the outcomes of two assemblies, in order.
fn joined(first: Outcome, mut then: Outcome) -> Outcome {
    then.warnings.splice(0..0, first.warnings);
    then.effects.splice(0..0, first.effects);
    then.more_warnings += first.more_warnings;
    for (name, value) in first.local {
        then.local.entry(name).or_insert(value);
    }
    then
}

/// Returns the instructions for protocols: the meaning of each and an example of a reply.
fn told(protocols: &[String], registry: &Registry, language: Language) -> String {
    let names = || protocols.iter().map(String::as_str);
    let (head, example) = match language {
        Language::Zh => ("请用以下标签书写回复：", "示例："),
        Language::En => ("Write your reply in these tags:", "Example:"),
    };
    let lines = registry.instructions(names(), language).join("\n");
    let shown = registry.examples(names(), language).concat();
    format!("{head}\n{lines}\n\n{example}\n{}", shown.trim_end())
}

/// Returns the text of the remaining pieces, without escaping boundaries in the history.
pub(super) fn text_of(pieces: &[Piece]) -> String {
    text_in(pieces, &Boundaries::new([]))
}

/// Returns the text that a piece contributes.
pub(super) fn text_alone(piece: &Piece) -> String {
    match &piece.line {
        Some(_) => yaml::print(&vec![said(piece, &Boundaries::new([]))].into()),
        None => text_of(std::slice::from_ref(piece)) + "\n\n",
    }
}

fn text_in(pieces: &[Piece], boundaries: &Boundaries) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut left = pieces.iter().filter(|piece| !piece.dropped).peekable();
    while let Some(piece) = left.next() {
        if piece.line.is_some() {
            let mut history = vec![said(piece, boundaries)];
            while let Some(next) = left.next_if(|next| next.line.is_some()) {
                history.push(said(next, boundaries));
            }
            let history = yaml::print(&history.into());
            parts.push(format!("<conversation_history>\n{history}</conversation_history>"));
        } else if let Some(role) = &piece.role {
            parts.push(format!("<block role=\"{role}\">\n{}\n</block>", piece.text));
        } else {
            parts.push(piece.text.clone());
        }
    }
    parts.join("\n\n")
}

/// Returns a message of the history as data.
fn said(piece: &Piece, boundaries: &Boundaries) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), piece.role.clone().unwrap_or_default().into());
    if let Some(name) = piece.line.as_ref().filter(|name| !name.is_empty()) {
        message.insert("name".into(), boundaries.escape(name).into_owned().into());
    }
    message.insert("content".into(), boundaries.escape(&piece.text).into_owned().into());
    message.into()
}

fn messages(pieces: &[Piece]) -> Vec<Message> {
    let left = || pieces.iter().filter(|piece| !piece.dropped);
    let system: Vec<&str> =
        left().filter(|piece| piece.role.is_none()).map(|piece| piece.text.as_str()).collect();
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(Message { role: "system".to_owned(), content: system.join("\n\n") });
    }
    messages.extend(left().filter_map(|piece| {
        let role = piece.role.clone()?;
        Some(Message { role, content: piece.text.clone() })
    }));
    messages
}
