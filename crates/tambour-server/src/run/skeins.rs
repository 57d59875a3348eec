//! Prompts from Skeins: a Skein (a prompt made of blocks) from a request is combined with imported cards and
//! lorebooks, and rendered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tambour::limits::ImportLimits;
use tambour_prompt::card::{ImportedFile, import_file};
use tambour_prompt::jinja::{Budget, Engine, UndefinedMode};
use tambour_prompt::lore::TimedEffects;
use tambour_prompt::role;
use tambour_prompt::skein::{RenderOptions, RenderedPrompt, from_import};
use uuid::Uuid;

use crate::base::cpu_pool::DropFlag;
use crate::base::ids;
use crate::base::problem::Problem;
use crate::base::tokenizer::Tokenizer;
use crate::config::skeins::parse_skein;
use crate::run::engine::RunEngine;
use crate::store::ImportKind;

/// Maximum number of lorebooks of one prompt.
const MAX_BOOKS: usize = 20;
/// Maximum total size of the imported files of one prompt, in bytes.
const MAX_IMPORT_BYTES: u64 = 64 << 20;

/// Sources of a prompt.
#[derive(Clone, Debug, Default)]
pub(crate) struct PromptSources {
    /// Skein: a JSON object, or a string of YAML. Without one, the card, or else the first lorebook, serves
    /// as the Skein.
    pub(crate) skein: Option<Value>,
    /// Id of an imported card.
    pub(crate) card: Option<String>,
    /// Ids of imported lorebooks.
    pub(crate) books: Vec<String>,
    /// Variables of the templates.
    pub(crate) context: Map<String, Value>,
    /// State of timed lore entries from earlier turns.
    pub(crate) timed: TimedEffects,
}

/// Options of a rendering.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RenderSettings {
    /// Maximum number of tokens of the prompt; `None` for the limit of the Skein, if any.
    pub(crate) max_context: Option<usize>,
    pub(crate) tokenizer: Tokenizer,
    /// True to count tokens even without a limit.
    pub(crate) count_tokens: bool,
    /// True to count the tokens of each part of the prompt too.
    pub(crate) count_parts: bool,
    /// True if a missing variable is an error.
    pub(crate) strict: bool,
    /// True to add the protocol instructions even if no slot asks for them.
    pub(crate) instructions: bool,
}

/// Converts an error of the libraries about the client's input to a problem, with its place in the input.
pub(crate) fn input_problem(code: &'static str, error: &tambour::Error) -> Problem {
    let problem = Problem::invalid(code, error.to_string());
    match error.location() {
        Some(place) => problem
            .with("line", place.line)
            .with("column", place.column)
            .with("excerpt", place.excerpt.as_str()),
        None => problem,
    }
}

/// Renders the prompt on the CPU pool.
///
/// # Errors
/// The Skein or the context is invalid, the owner has no card or lorebook with one of the ids, the cards and
/// lorebooks are too many or too large, or a template fails or takes too long.
pub(crate) async fn render(
    run_engine: &Arc<RunEngine>,
    owner: &str,
    sources: PromptSources,
    settings: RenderSettings,
) -> Result<RenderedPrompt, Problem> {
    if sources.books.len() > MAX_BOOKS {
        let detail = format!("`lorebook_ids` must have at most {MAX_BOOKS} ids, not {}", sources.books.len());
        return Err(Problem::invalid("invalid_field", detail).with("field", "lorebook_ids"));
    }
    if sources.skein.is_none() && sources.card.is_none() && sources.books.is_empty() {
        let detail = "a prompt needs `skein`, `card_id` or `lorebook_ids`";
        return Err(Problem::invalid("missing_field", detail).with("field", "skein"));
    }
    let PromptSources { skein, card, books, mut context, timed: timed_effects } = sources;
    let card = card.map(|id| (ImportKind::Card, id));
    let named_files: Vec<_> =
        card.into_iter().chain(books.into_iter().map(|id| (ImportKind::Lorebook, id))).collect();
    let mut files = Vec::with_capacity(named_files.len());
    let mut total_bytes = 0;
    for (kind, id) in named_files {
        let row =
            run_engine.store.import(owner, kind, &id).await?.ok_or_else(|| missing_import(kind, &id))?;
        total_bytes += row.size;
        files.push((kind, row));
    }
    if total_bytes > MAX_IMPORT_BYTES {
        let detail = format!(
            "the cards and books of one prompt must have at most {MAX_IMPORT_BYTES} bytes, not {total_bytes}"
        );
        return Err(Problem::invalid("invalid_field", detail).with("field", "lorebook_ids"));
    }
    let mut imported_skeins = Vec::with_capacity(files.len());
    for (kind, row) in files {
        let bytes = run_engine
            .store
            .import_bytes(owner, kind, &row.id)
            .await?
            .ok_or_else(|| missing_import(kind, &row.id))?;
        imported_skeins.push(
            run_engine
                .cpu_pool
                .run(owner, move || reparse_import(&row.file, &bytes).map(|import| from_import(&import)))
                .await??,
        );
    }
    if let Err(error) = role::check_roles(&context) {
        return Err(Problem::invalid("invalid_field", error.to_string()).with("field", "context"));
    }
    context.entry("now").or_insert_with(|| ids::now().into());
    let language = run_engine.settings().texts().language;
    // The flag is set when this future is dropped: a rendering stops once its client has disconnected.
    let drop_flag = DropFlag::default();
    let is_abandoned = Arc::clone(&drop_flag.0);
    run_engine
        .cpu_pool
        .run(owner, move || {
            let mut imported_skeins = imported_skeins.into_iter();
            let mut skein = match skein {
                Some(value) => parse_skein(&value)
                    .map_err(|error| input_problem("invalid_skein", &error).with("field", "skein"))?,
                None => imported_skeins.next().unwrap_or_default(),
            };
            imported_skeins.for_each(|imported| skein.merge_lore(&imported));
            let engine =
                Engine::new(if settings.strict { UndefinedMode::Strict } else { UndefinedMode::Lenient });
            let count_tokens = |text: &str| settings.tokenizer.count(text);
            let mut options = RenderOptions::default();
            options.budget = Some(render_budget(&engine, is_abandoned));
            options.engine = Some(&engine);
            options.language = language;
            options.adds_instructions = settings.instructions;
            options.counts_parts = settings.count_parts;
            options.max_context = settings.max_context;
            options.timed_effects = timed_effects;
            options.random_seed = Uuid::new_v4().as_u64_pair().0;
            // Counting is slow, so it is skipped if the counts are not needed.
            let needs_counts = settings.count_tokens
                || settings.max_context.or(skein.max_context).is_some()
                || skein.scan.as_ref().is_some_and(|scan| scan.budget.is_some());
            options.count_tokens = if needs_counts { &count_tokens } else { &|_| 0 };
            skein
                .render(&context.into(), &options)
                .map_err(|error| input_problem("prompt_not_rendered", &error))
        })
        .await?
}

/// Longest time for rendering the templates of one prompt.
const RENDER_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the budget of a rendering, which ends when the client is gone or after [`RENDER_TIMEOUT`].
fn render_budget(engine: &Engine, is_abandoned: Arc<AtomicBool>) -> Budget {
    let start_time = Instant::now();
    Budget::with_stop(engine.limits(), move || {
        is_abandoned.load(Ordering::Relaxed) || start_time.elapsed() > RENDER_TIMEOUT
    })
}

/// Parses a stored card or lorebook again; `file` is its file name.
///
/// # Errors
/// The file is no longer readable, although it was when it was imported.
pub(crate) fn reparse_import(file: &str, bytes: &[u8]) -> Result<ImportedFile, Problem> {
    import_file(file, bytes, &ImportLimits::default()).map_err(|error| {
        tracing::error!(%error, "an imported file cannot be read");
        let detail = "the stored file can no longer be read; import it again";
        Problem::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
    })
}

/// Returns the problem of a request that names a card or lorebook which the owner does not have.
pub(crate) fn missing_import(kind: ImportKind, id: &str) -> Problem {
    Problem::not_found(format!("there is no {} `{id}`", kind.db_name()))
}

/// Returns a rendered prompt as JSON for the client.
pub(crate) fn rendered_json(rendered_prompt: &RenderedPrompt) -> Value {
    let mut warnings: Vec<Value> =
        rendered_prompt.warnings.iter().map(|text| json!({"message": text})).collect();
    warnings.extend(rendered_prompt.outcome.warnings.iter().map(|warning| {
        json!({
            "code": warning.code,
            "message": warning.message,
            "template": warning.template,
            "line": warning.line,
            "column": warning.column,
        })
    }));
    if rendered_prompt.outcome.more_warnings > 0 {
        let text = format!("{} more warnings are not listed", rendered_prompt.outcome.more_warnings);
        warnings.push(json!({"message": text}));
    }
    json!({
        "text": rendered_prompt.text,
        "messages": rendered_prompt.messages,
        "tokens": rendered_prompt.tokens,
        "dropped": rendered_prompt.dropped_parts,
        "over": rendered_prompt.is_over_limit,
        "parts": rendered_prompt.parts,
        "lore": rendered_prompt.lore_titles,
        "lore_woken": rendered_prompt.active_lore,
        "lore_dropped": rendered_prompt.dropped_lore,
        "timed": rendered_prompt.timed_effects,
        "expected_structure": rendered_prompt.expected_structure.as_ref().map(|expected| expected.to_json()),
        "warnings": warnings,
        "effects": rendered_prompt.outcome.effects,
    })
}

#[cfg(test)]
mod tests {
    use tambour_prompt::skein::Skein;

    use super::*;

    #[test]
    fn a_rendering_ends_when_nobody_waits_for_it() {
        let engine = Engine::new(UndefinedMode::Lenient);
        let long = "{% for a in range(100) %}{% for b in range(100) %}x{% endfor %}{% endfor %}";
        let skein = parse_skein(&json!({"blocks": [{"tag": "a", "text": long}]})).unwrap();
        let rendered_len = |skein: &Skein, is_abandoned: Arc<AtomicBool>| {
            let mut options = RenderOptions::default();
            options.budget = Some(render_budget(&engine, is_abandoned));
            options.engine = Some(&engine);
            skein.render(&json!({}), &options).map(|prompt| prompt.text.len())
        };
        let drop_flag = DropFlag::default();
        assert!(rendered_len(&skein, Arc::clone(&drop_flag.0)).unwrap() >= 10_000);
        let is_abandoned = Arc::clone(&drop_flag.0);
        drop(drop_flag);
        assert!(rendered_len(&skein, is_abandoned).is_err());
    }
}
