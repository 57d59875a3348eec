//! Prompts, cards and macros.

use serde_json::Value;
use tambour::error::{Error, Result};
use tambour::limits::ImportLimits;
use tambour::texts::Language;
use tambour_prompt::card::normalize::normalize_entry;
use tambour_prompt::card::{ImportedFileKind, import_file};
use tambour_prompt::jinja::{Budget, Engine, UndefinedMode};
use tambour_prompt::macros::migrate;
use tambour_prompt::skein::{RenderOptions, Skein, from_import};

use crate::records::{ImportedCard, MacroWarning, MigratedText, PromptMessage, RenderedPrompt};

/// A prompt, or a file that becomes one.
#[derive(Clone, Debug)]
pub enum PromptSource {
    /// Skein in YAML or JSON.
    Text(String),
    /// Skein as a value.
    Value(Value),
    /// Card, lorebook or preset.
    File {
        /// Bytes of the file.
        bytes: Vec<u8>,
        /// Name of the file, for messages.
        name: String,
    },
}

/// Settings of rendering a prompt.
pub struct PromptSettings<'a> {
    /// Variables of the templates; an object.
    pub context: &'a Value,
    /// Prompts whose world info and variables are added.
    pub others: &'a [PromptSource],
    /// Maximum number of tokens.
    pub max_context: Option<usize>,
    /// Language of format instructions.
    pub language: Language,
    /// True to fail on an undefined variable.
    pub is_strict: bool,
    /// Timed effects of world info from earlier turns.
    pub timed_effects: Option<Value>,
    /// Seed of random choices if the context has none.
    pub random_seed: u64,
    /// Counts the tokens of a text; the library estimates if `None`.
    pub count_tokens: Option<&'a dyn Fn(&str) -> usize>,
    /// Returns true to stop the rendering.
    pub should_stop: Box<dyn Fn() -> bool + Send + Sync>,
}

impl PromptSource {
    fn load(&self, warnings: &mut Vec<String>) -> Result<Skein> {
        match self {
            PromptSource::Text(text) => Skein::from_yaml("the prompt", text),
            PromptSource::Value(value) => Skein::from_value(value),
            PromptSource::File { bytes, name } => {
                let imported = import_file(name, bytes, &ImportLimits::default())?;
                warnings.extend(imported.warnings.iter().cloned());
                Ok(from_import(&imported))
            }
        }
    }
}

/// Renders a prompt to text and messages, as `tambour prompt render` does.
///
/// # Errors
/// The prompt or the context is malformed, or a template cannot be rendered within its limits.
pub fn render_prompt(source: &PromptSource, settings: PromptSettings<'_>) -> Result<RenderedPrompt> {
    let mut warnings = Vec::new();
    let mut skein = source.load(&mut warnings)?;
    for other in settings.others {
        skein.merge_lore(&other.load(&mut warnings)?);
    }
    let engine = Engine::new(if settings.is_strict { UndefinedMode::Strict } else { UndefinedMode::Lenient });
    let mut options = RenderOptions::default();
    options.engine = Some(&engine);
    options.budget = Some(Budget::with_stop(engine.limits(), settings.should_stop));
    options.max_context = settings.max_context;
    options.language = settings.language;
    options.random_seed = settings.random_seed;
    if let Some(effects) = settings.timed_effects {
        options.timed_effects = serde_json::from_value(effects)
            .map_err(|error| Error::invalid(format!("timed_effects: {error}")))?;
    }
    if let Some(count_tokens) = settings.count_tokens {
        options.count_tokens = count_tokens;
    }
    let rendered = skein.render(settings.context, &options)?;
    for warning in rendered.warnings {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings.extend(rendered.outcome.warnings.iter().map(|warning| {
        let line = warning.line.map(|line| format!(", line {line}")).unwrap_or_default();
        format!("{}{line}: {}: {}", warning.template, warning.code, warning.message)
    }));
    let messages = rendered.messages.into_iter();
    Ok(RenderedPrompt {
        text: rendered.text,
        messages: messages
            .map(|message| PromptMessage { role: message.role, content: message.content })
            .collect(),
        tokens: rendered.tokens,
        is_over_limit: rendered.is_over_limit,
        dropped_parts: to_values(&rendered.dropped_parts),
        lore_titles: rendered.lore_titles,
        timed_effects: serde_json::to_value(&rendered.timed_effects).unwrap_or_default(),
        effects: to_values(&rendered.outcome.effects),
        warnings,
    })
}

/// Imports a card, a lorebook or a preset, as `tambour import` does.
///
/// # Errors
/// The file is of no known kind, exceeds a limit or is broken.
pub fn import_card(name: &str, bytes: &[u8]) -> Result<ImportedCard> {
    let imported = import_file(name, bytes, &ImportLimits::default())?;
    let entries = imported.entries.iter().map(|entry| {
        let mut value = serde_json::to_value(entry).unwrap_or_default();
        value["normalised"] = normalize_entry(&entry.title, &entry.content).render().into();
        value
    });
    Ok(ImportedCard {
        kind: to_value(&imported.kind).as_str().unwrap_or_default().to_owned(),
        version: imported.version.clone(),
        name: imported.name.clone(),
        card: imported.card.as_ref().map(to_value),
        entries: entries.collect(),
        preset: (imported.kind == ImportedFileKind::Preset).then(|| to_value(&imported.preset)),
        warnings: imported.warnings.clone(),
        skein: from_import(&imported).to_yaml(),
        v3: imported.export(),
    })
}

/// Translates the macros of a text to Jinja, as `tambour macros migrate` does.
#[must_use]
pub fn migrate_macros(text: &str) -> MigratedText {
    let migrated = migrate(text);
    let warnings = migrated.warnings.into_iter().map(|warning| MacroWarning {
        code: warning.code.to_owned(),
        name: warning.name,
        line: warning.line,
        column: warning.column,
        message: warning.message,
    });
    MigratedText {
        text: migrated.text,
        warnings: warnings.collect(),
        translated: migrated.report.translated,
        left: migrated.report.left,
        rules: migrated.report.rules.iter().map(|(row, count)| ((*row).to_owned(), *count)).collect(),
    }
}

fn to_value<T: serde::Serialize>(item: &T) -> Value {
    serde_json::to_value(item).unwrap_or_default()
}

fn to_values<T: serde::Serialize>(items: &[T]) -> Vec<Value> {
    items.iter().map(to_value).collect()
}
