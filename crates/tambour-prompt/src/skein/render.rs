//! Renders a prompt to text and to role messages (F-028).

use serde::Serialize;
use serde_json::{Map, Value, json};

use tambour::error::{Error, Result};
use tambour::protocol::ProtocolRegistry;
use tambour::structure::ExpectedStructure;
use tambour::texts::Language;
use tambour::texts::format_count;
use tambour::yaml;

use super::super::jinja::{Assembly, AssemblyOutcome, Budget, Engine, PromptContext, UndefinedMode};
use super::super::lore::{ActivationCause, CharacterText, DropReason, TimedEffects};
use super::super::{role, tokens};
use super::budget_cut::{DroppedPart, PartKey, cut_to_budget};
use super::escape::BoundaryTags;
use super::lore::{ActiveLore, chat_lines};
use super::note::{self, AuthorNote};
use super::pieces::{PromptPiece, SkeinRenderer};
use super::{BlockBody, BlockPriority, Skein};

/// Options for rendering a prompt.
#[non_exhaustive]
pub struct RenderOptions<'a> {
    /// Engine for the templates; if `None`, a new one that accepts undefined variables. Reusing an engine
    /// reuses its compiled templates.
    pub engine: Option<&'a Engine>,
    /// Known protocols; those of the library if `None`.
    pub registry: Option<&'a ProtocolRegistry>,
    /// Language of the protocol instructions.
    pub language: Language,
    /// True if protocol instructions are added even without a slot `protocols`.
    pub adds_instructions: bool,
    /// Counts the tokens of a text.
    pub count_tokens: &'a dyn Fn(&str) -> usize,
    /// Maximum number of tokens of the prompt; overrides the limit of the prompt itself.
    pub max_context: Option<usize>,
    /// Timed effects of world info from earlier turns.
    pub timed_effects: TimedEffects,
    /// Seed of random choices if the context has no `seed`.
    pub random_seed: u64,
    /// True if the tokens of each part are counted as well.
    pub counts_parts: bool,
    /// Budget for all templates together, and their stop condition; the engine's limits if `None`.
    pub budget: Option<Budget>,
}

impl Default for RenderOptions<'_> {
    fn default() -> Self {
        RenderOptions {
            engine: None,
            registry: None,
            language: Language::En,
            adds_instructions: false,
            count_tokens: &tokens::estimate_tokens,
            max_context: None,
            timed_effects: TimedEffects::default(),
            random_seed: 0,
            counts_parts: false,
            budget: None,
        }
    }
}

/// A message for the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PromptMessage {
    /// Role: `system`, `user`, `assistant`, or a role of the history.
    pub role: String,
    /// Text.
    pub content: String,
}

/// A part of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CountedPart {
    /// Identity of the part.
    #[serde(flatten)]
    pub what: PartKey,
    /// Priority of the part.
    pub priority: BlockPriority,
    /// Tokens of the part. The counts of all parts do not add up exactly to the tokens of the prompt.
    pub tokens: usize,
    /// True if the part was dropped because the prompt was too long.
    pub dropped: bool,
}

/// An active world info entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ActivatedEntry {
    /// Number of its block, from 1.
    pub number: usize,
    /// Title of the entry.
    pub title: String,
    /// Cause of its activation.
    #[serde(flatten)]
    pub wake: ActivationCause,
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
    pub why: DropReason,
}

/// A rendered prompt.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RenderedPrompt {
    /// Complete prompt as text.
    pub text: String,
    /// Complete prompt as messages. The parts without a role form the system message.
    pub messages: Vec<PromptMessage>,
    /// Tokens of the text.
    pub tokens: usize,
    /// Parts that were dropped because the prompt was too long, in order of removal.
    pub dropped_parts: Vec<DroppedPart>,
    /// True if the prompt is still too long although nothing more can be dropped.
    pub is_over_limit: bool,
    /// Expected structure of the reply.
    pub expected_structure: Option<ExpectedStructure>,
    /// Parts in order, if they were counted ([`RenderOptions::counts_parts`]).
    pub parts: Vec<CountedPart>,
    /// Titles of the active world info, in the order of the blocks.
    pub lore_titles: Vec<String>,
    /// Active world info with its causes, in the same order.
    pub active_lore: Vec<ActivatedEntry>,
    /// World info that matched but is not active.
    pub dropped_lore: Vec<DroppedEntry>,
    /// Timed effects of world info, for the next turn.
    pub timed_effects: TimedEffects,
    /// Warnings and effects of the templates.
    pub outcome: AssemblyOutcome,
    /// Other warnings.
    pub warnings: Vec<String>,
}

impl Skein {
    /// Renders the prompt. `context` is an object with the variables of F-020; the prompt's own `metadata`
    /// supplies missing ones.
    ///
    /// # Errors
    /// The context is not an object, or a reserved key has the wrong form; a template does not compile or
    /// exceeds a limit (the error names block, line and column); or a protocol is unknown to a strict engine.
    pub fn render(&self, context: &Value, options: &RenderOptions<'_>) -> Result<RenderedPrompt> {
        let Value::Object(context_map) = context else {
            return Err(Error::invalid("a context must be a JSON object"));
        };
        let mut values = self.template_variables(context_map);
        let role_warnings = role::normalize_roles(&mut values)?;
        let lines = chat_lines(&values);
        let default_engine = Engine::new(UndefinedMode::Lenient);
        let engine = options.engine.unwrap_or(&default_engine);
        let budget = options.budget.clone().unwrap_or_else(|| Budget::new(engine.limits()));
        let charge = |bytes| budget.spend_read(bytes);
        let mut note_outcome = AssemblyOutcome::default();
        if note::has_macros(&values) {
            let context = PromptContext::new(values.clone())?;
            let mut assembly = Assembly::with_budget(engine, context, options.random_seed, budget.clone());
            note_outcome = note::render_macros(&mut values, &mut assembly)?;
        }
        let sources = self.render_sources(&values, engine, &budget, options.random_seed)?;
        let active_lore = self.activate_lore(
            &values,
            (&lines, &sources),
            &options.timed_effects,
            options.count_tokens,
            &charge,
        )?;
        let note = AuthorNote::new(self, &values, &active_lore);
        self.add_outlets(&active_lore, &mut values);
        let registry = options.registry.cloned().unwrap_or_default();
        let (expected_structure, protocol_warnings) = self.expected_structure(&registry)?;
        let mut unknown_protocols = self.protocols();
        unknown_protocols.retain(|name| registry.get(name).is_none());
        if engine.mode() == UndefinedMode::Strict
            && let Some(warning) =
                protocol_warnings.iter().find(|warning| unknown_protocols.contains(&warning.protocol))
        {
            return Err(Error::invalid(warning.message.clone()));
        }
        let boundaries = BoundaryTags::new(self.blocks.iter().map(|block| block.tag.as_str()));
        let lore_outcome = self.render_lore_variables(
            &mut values,
            &active_lore,
            &boundaries,
            engine,
            &budget,
            options.random_seed,
        )?;
        let mut assembly =
            Assembly::with_budget(engine, PromptContext::new(values)?, options.random_seed, budget);
        let mut renderer = SkeinRenderer {
            protocol_instructions: protocol_instructions(&self.protocols(), &registry, options.language),
            adds_instructions: options.adds_instructions,
            lines: &lines,
            note,
            unknown_protocols: &unknown_protocols,
            ..SkeinRenderer::new(self, &mut assembly, &boundaries, &active_lore)
        };
        renderer.render_pieces()?;
        let SkeinRenderer { mut pieces, mut warnings, .. } = renderer;
        warnings.splice(0..0, role_warnings);
        let max_tokens = options.max_context.or(self.max_context);
        let dropped_parts = max_tokens
            .map(|max_tokens| cut_to_budget(&mut pieces, &boundaries, max_tokens, options.count_tokens))
            .unwrap_or_default();
        let text = render_text(&pieces, &boundaries);
        let tokens = (options.count_tokens)(&text);
        let is_over_limit = max_tokens.is_some_and(|max_tokens| tokens > max_tokens);
        if is_over_limit {
            warnings.push(format!(
                "the prompt has {}, but at most {} are allowed; nothing more can be left out",
                format_count(tokens, "token"),
                max_tokens.unwrap_or_default()
            ));
        }
        warnings.extend(protocol_warnings.into_iter().map(|warning| warning.message));
        warnings.extend(active_lore.activation.warnings.iter().cloned());
        let number_of = |entry_index: usize| active_lore.blocks[entry_index] + 1;
        let title_of = |entry_index: usize| {
            let block = &self.blocks[active_lore.blocks[entry_index]];
            let title =
                block.lore.as_ref().map(|entry| entry.title.clone()).filter(|title| !title.is_empty());
            title.unwrap_or_else(|| block.tag.clone())
        };
        let activated_entries = active_lore.activation.active.iter().zip(&active_lore.activation.woken);
        let activated_entries = activated_entries.map(|(&entry_index, wake)| ActivatedEntry {
            number: number_of(entry_index),
            title: title_of(entry_index),
            wake: wake.clone(),
        });
        let dropped_lore = active_lore.activation.dropped.iter().map(|dropped| DroppedEntry {
            number: number_of(dropped.entry),
            title: title_of(dropped.entry),
            why: dropped.why,
        });
        let count_part = |piece: &PromptPiece| CountedPart {
            what: piece.part.clone(),
            priority: piece.priority,
            tokens: (options.count_tokens)(&piece_text(piece, &boundaries)),
            dropped: piece.is_dropped,
        };
        Ok(RenderedPrompt {
            parts: if options.counts_parts { pieces.iter().map(count_part).collect() } else { Vec::new() },
            active_lore: activated_entries.collect(),
            dropped_lore: dropped_lore.collect(),
            messages: role_messages(&pieces),
            text,
            tokens,
            dropped_parts,
            is_over_limit,
            expected_structure,
            lore_titles: active_lore.activation.active.iter().map(|&index| title_of(index)).collect(),
            timed_effects: active_lore.activation.timed,
            outcome: merge_outcomes(note_outcome, merge_outcomes(lore_outcome, assembly.outcome())),
            warnings,
        })
    }

    /// Renders the texts of user and character that world info entries search, as they appear in the prompt.
    fn render_sources(
        &self,
        values: &Map<String, Value>,
        engine: &Engine,
        budget: &Budget,
        random_seed: u64,
    ) -> Result<Vec<(CharacterText, String)>> {
        let entries = || self.blocks.iter().filter_map(|block| block.lore.as_ref());
        let sources = CharacterText::ALL
            .into_iter()
            .filter(|source| entries().any(|entry| entry.sources.contains(source)));
        let sources: Vec<CharacterText> = sources.collect();
        if sources.is_empty() {
            return Ok(Vec::new());
        }
        // Effects and warnings of these renderings are ignored; they occur again where the texts are printed.
        let mut assembly =
            Assembly::with_budget(engine, PromptContext::new(values.clone())?, random_seed, budget.clone());
        let render_source = |source: CharacterText| {
            let (name, template) = match source {
                CharacterText::Persona => ("persona", "{{ user.persona }}"),
                CharacterText::Description => ("description", "{{ char.description }}"),
                CharacterText::Personality => ("personality", "{{ char.personality }}"),
                CharacterText::DepthPrompt => ("depth_prompt", "{{ char.depth_prompt }}"),
                CharacterText::Scenario => ("scenario", "{{ char.scenario }}"),
                CharacterText::CreatorNotes => ("creator_notes", "{{ char.creator_notes }}"),
            };
            Ok((source, assembly.render(name, template)?))
        };
        sources.into_iter().map(render_source).collect()
    }

    /// Renders the world info that templates print through variables, and adds it to `values`, with the
    /// variables that it sets, so that later templates see them.
    fn render_lore_variables(
        &self,
        values: &mut Map<String, Value>,
        active_lore: &ActiveLore,
        boundaries: &BoundaryTags,
        engine: &Engine,
        budget: &Budget,
        random_seed: u64,
    ) -> Result<AssemblyOutcome> {
        let mut assembly =
            Assembly::with_budget(engine, PromptContext::new(values.clone())?, random_seed, budget.clone());
        let mut variables =
            SkeinRenderer::new(self, &mut assembly, boundaries, active_lore).render_variables()?;
        if variables.is_empty() {
            return Ok(AssemblyOutcome::default());
        }
        note::add_note_text(values, &mut variables);
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

    /// Returns the variables for the templates: those of the context, completed by the metadata of the
    /// prompt. `user`, `char` and `config` get the fields that they lack, and so does a person given only by
    /// name.
    fn template_variables(&self, context_map: &Map<String, Value>) -> Map<String, Value> {
        let mut values = context_map.clone();
        for (key, value) in &self.metadata {
            match (values.get(key), value) {
                (Some(Value::String(name)), Value::Object(defaults))
                    if matches!(key.as_str(), "user" | "char") =>
                {
                    let mut person = defaults.clone();
                    person.insert("name".into(), name.clone().into());
                    values.insert(key.clone(), person.into());
                }
                (Some(Value::Object(fields)), Value::Object(defaults))
                    if matches!(key.as_str(), "user" | "char" | "config") =>
                {
                    let mut merged = defaults.clone();
                    merged.extend(fields.iter().map(|(key, value)| (key.clone(), value.clone())));
                    values.insert(key.clone(), merged.into());
                }
                (Some(value), _) if !value.is_null() => {}
                _ => {
                    values.insert(key.clone(), value.clone());
                }
            }
        }
        values
    }

    /// Adds active world info to the outlets of the context, as templates that are rendered when they are
    /// printed.
    fn add_outlets(&self, active_lore: &ActiveLore, values: &mut Map<String, Value>) {
        if active_lore.activation.slots.outlets.is_empty() {
            return;
        }
        let outlets = values.entry("outlets").or_insert_with(|| json!({}));
        let Value::Object(outlets) = outlets else { return };
        for (name, entries) in &active_lore.activation.slots.outlets {
            let texts = entries.iter().map(|&entry| match &self.blocks[active_lore.blocks[entry]].body {
                BlockBody::Text(text) => text.trim_matches(['\n', '\r']).to_owned(),
                BlockBody::Data(value) => yaml::print(value).trim_end().to_owned(),
                BlockBody::Slot(_) => String::new(),
            });
            let mut outlet_texts: Vec<Value> = match outlets.get(name) {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Array(texts)) => texts.clone(),
                Some(text) => vec![text.clone()],
            };
            outlet_texts.extend(texts.map(Value::from));
            outlets.insert(name.clone(), outlet_texts.into());
        }
    }
}

/// Combines the outcomes of two assemblies, in order. A variable that both set has its later value; the
/// global variables are those of the second.
fn merge_outcomes(first: AssemblyOutcome, mut second: AssemblyOutcome) -> AssemblyOutcome {
    second.warnings.splice(0..0, first.warnings);
    second.effects.splice(0..0, first.effects);
    second.more_warnings += first.more_warnings;
    for (name, value) in first.local {
        second.local.entry(name).or_insert(value);
    }
    second
}

/// Returns the instructions for protocols: the meaning of each and an example of a reply.
fn protocol_instructions(protocols: &[String], registry: &ProtocolRegistry, language: Language) -> String {
    let names = || protocols.iter().map(String::as_str);
    let (heading, example_heading) = match language {
        Language::Zh => ("请用以下标签书写回复：", "示例："),
        Language::En => ("Write your reply in these tags:", "Example:"),
    };
    let lines = registry.instructions(names(), language).join("\n");
    let examples = registry.examples(names(), language).concat();
    format!("{heading}\n{lines}\n\n{example_heading}\n{}", examples.trim_end())
}

/// Returns the text that a piece adds to the prompt, for counting its tokens.
pub(super) fn piece_text(piece: &PromptPiece, boundaries: &BoundaryTags) -> String {
    match &piece.speaker {
        Some(_) => yaml::print(&vec![history_message(piece, boundaries)].into()),
        None => render_text(std::slice::from_ref(piece), boundaries) + "\n\n",
    }
}

/// Returns the text of the pieces that are not dropped; in the history, boundary tags are escaped.
/// Neighbouring messages of the history share one element.
pub(super) fn render_text(pieces: &[PromptPiece], boundaries: &BoundaryTags) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut remaining = pieces.iter().filter(|piece| !piece.is_dropped).peekable();
    while let Some(piece) = remaining.next() {
        if piece.speaker.is_some() {
            let mut history = vec![history_message(piece, boundaries)];
            while let Some(message_piece) = remaining.next_if(|piece| piece.speaker.is_some()) {
                history.push(history_message(message_piece, boundaries));
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
fn history_message(piece: &PromptPiece, boundaries: &BoundaryTags) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), piece.role.clone().unwrap_or_default().into());
    if let Some(name) = piece.speaker.as_ref().filter(|name| !name.is_empty()) {
        message.insert("name".into(), boundaries.escape(name).into_owned().into());
    }
    message.insert("content".into(), boundaries.escape(&piece.text).into_owned().into());
    message.into()
}

/// Returns the pieces that are not dropped as messages: the system message first, then those with a role.
fn role_messages(pieces: &[PromptPiece]) -> Vec<PromptMessage> {
    let remaining = || pieces.iter().filter(|piece| !piece.is_dropped);
    let system: Vec<&str> =
        remaining().filter(|piece| piece.role.is_none()).map(|piece| piece.text.as_str()).collect();
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(PromptMessage { role: "system".to_owned(), content: system.join("\n\n") });
    }
    messages.extend(remaining().filter_map(|piece| {
        let role = piece.role.clone()?;
        Some(PromptMessage { role, content: piece.text.clone() })
    }));
    messages
}
