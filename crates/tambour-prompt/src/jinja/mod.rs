//! The Jinja environment of prompts (F-020 to F-036): templates over a context, in a sandbox.
//!
//! An [`Engine`] compiles and caches templates. An [`Assembly`] renders the templates of one prompt in order,
//! and collects warnings and requested effects. The templates of a prompt share the variables they set.
//!
//! ```
//! use serde_json::json;
//! use tambour_prompt::jinja::{Assembly, Engine, PromptContext, UndefinedMode};
//!
//! let context = PromptContext::from_json(&json!({
//!     "user": "小明", "char": {"name": "Seraphina", "description": "{{char}} knows {{user}}."},
//!     "state": {"hp": 7.0}, "now": "2026-03-14T15:09:00+08:00"
//! }))?;
//! let engine = Engine::new(UndefinedMode::Lenient);
//! let random_seed = 1;
//! let mut assembly = Assembly::new(&engine, context, random_seed);
//! let text = assembly.render("hello", "{{ char.description }} {{ state.hp }}/10, {{ now | time_format('LT') }}")?;
//! assert_eq!(text, "Seraphina knows 小明. 7/10, 3:09 PM");
//! # Ok::<(), tambour::Error>(())
//! ```
//!
//! Values are data: nothing in them is interpreted. Card fields (such as `char.description`),
//! `user.persona` and outlet entries are exceptions: they are texts with macros and are rendered when a
//! template reads them.
//!
//! [`Engine`] wraps minijinja, the library that compiles and runs the templates.

mod assembly;
mod budget;
mod builtins;
mod chance;
mod context;
#[doc(hidden)]
pub mod dates;
mod descriptions;
mod expression;
mod expression_part;
mod filters;
mod flatten;
mod functions;
mod grammar;
mod marks;
mod operators;
mod participants;
mod rewrite;
mod scope;
pub(crate) mod source;
mod tavern;
mod template_error;
mod text;
mod typed_comparison;
mod values;
mod variable_keys;

pub use assembly::{Assembly, AssemblyOutcome, Effect, TemplateWarning};
pub use budget::Budget;
pub use context::PromptContext;
#[doc(hidden)]
pub use descriptions::DESCRIPTION_PAIR;
pub(crate) use expression::evaluate_typed_condition;
#[doc(hidden)]
pub use expression::list_variables;
pub use expression::{evaluate, evaluate_condition};
#[doc(hidden)]
pub use operators::OPERATORS;
pub(crate) use typed_comparison::{Operand, OperandType, TypeMismatch, list_comparisons, parse_number};

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use sha2::{Digest, Sha256};

use crate::macros::{self, MigratedText};
use rewrite::RewrittenSource;
use scope::{PromptScope, TemplateFrame};
use tambour::error::{Error, Location, Result};
use tambour::finding::clip;
use template_error::{template_error, with_template_name};

/// Handling of missing values in templates (F-024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UndefinedMode {
    /// A missing value is empty; printing it causes a warning.
    #[default]
    Lenient,
    /// A missing value is an error.
    Strict,
}

/// Limits on the cost of templates (F-024).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JinjaLimits {
    /// Maximum length of a template's source in bytes.
    pub source: usize,
    /// Maximum length of a template's output in bytes.
    pub output: usize,
    /// Maximum number of steps of one template. One step is an instruction, a value that is traversed, or 64
    /// bytes that are read or produced.
    pub fuel: u64,
    /// Maximum number of steps of all templates of one prompt.
    pub prompt_fuel: u64,
    /// Maximum number of bytes of all values that the templates of one prompt create, including dropped ones,
    /// and of their output.
    pub memory: usize,
    /// Maximum nesting depth of statements, expressions and macros.
    pub recursion: usize,
    /// Maximum number of compiled templates in the cache.
    pub templates: usize,
}

impl Default for JinjaLimits {
    fn default() -> JinjaLimits {
        JinjaLimits {
            source: 1 << 20,
            output: 4 << 20,
            fuel: 500_000,
            prompt_fuel: 2_000_000,
            memory: 32 << 20,
            recursion: 100,
            templates: 1_000,
        }
    }
}

/// Compiles and caches templates. Cheap to clone; clones share the cache.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

struct EngineInner {
    mode: UndefinedMode,
    limits: JinjaLimits,
    cache: Mutex<TemplateCache>,
    /// Number of lookups that found the template in the cache.
    hits: AtomicU64,
    /// Number of lookups that did not find it.
    misses: AtomicU64,
}

/// Cached templates by source. The environment holds the compiled code under the hash of the source.
struct TemplateCache {
    env: Arc<Environment<'static>>,
    /// Rewritten sources by [`CompiledTemplate::key`], from which the environment takes what it compiles.
    sources: Arc<Mutex<HashMap<String, String>>>,
    /// Compiled templates by source.
    templates: HashMap<Arc<str>, Arc<CompiledTemplate>>,
    /// Texts with their macros translated, by source.
    migrations: HashMap<Arc<str>, Arc<MigratedText>>,
}

/// Template with its compiled code in the environment.
struct CompiledTemplate {
    env: Arc<Environment<'static>>,
    /// Source from the caller, in which internal marks are replaced.
    source: Arc<str>,
    /// SHA-256 of the source.
    hash: [u8; 32],
    /// The hash in hexadecimal digits: name of the template in the environment.
    key: String,
    rewritten_source: RewrittenSource,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("mode", &self.0.mode).field("limits", &self.0.limits).finish()
    }
}

impl Engine {
    /// Creates an engine with the default limits.
    #[must_use]
    pub fn new(mode: UndefinedMode) -> Engine {
        Engine::with_limits(mode, JinjaLimits::default())
    }

    /// Creates an engine with these limits.
    #[must_use]
    pub fn with_limits(mode: UndefinedMode, limits: JinjaLimits) -> Engine {
        let cache = Mutex::new(TemplateCache::new(mode, &limits));
        Engine(Arc::new(EngineInner {
            mode,
            limits,
            cache,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }))
    }

    /// Handling of missing values.
    #[must_use]
    pub fn mode(&self) -> UndefinedMode {
        self.0.mode
    }

    /// Limits on the cost of templates.
    #[must_use]
    pub fn limits(&self) -> &JinjaLimits {
        &self.0.limits
    }

    /// Number of cache hits and misses (F-040).
    #[doc(hidden)]
    #[must_use]
    pub fn cache_counts(&self) -> (u64, u64) {
        (self.0.hits.load(Ordering::Relaxed), self.0.misses.load(Ordering::Relaxed))
    }

    /// Compiles `source` without rendering it. `name` appears in errors.
    ///
    /// # Errors
    /// The template is too long or does not compile. The error names template, line and column and quotes the
    /// line (F-025).
    pub fn check(&self, name: &str, source: &str) -> Result<()> {
        self.compile(name, source, None).map(|_| ())
    }

    /// Returns the names that a template reads without setting them, sorted: `user`, `state.hp`.
    ///
    /// # Errors
    /// Same as [`Engine::check`].
    #[doc(hidden)]
    pub fn list_undeclared(&self, name: &str, source: &str) -> Result<Vec<String>> {
        let compiled_template = self.compile(name, source, None)?;
        let template = compiled_template.env.get_template(&compiled_template.key);
        let template = template.map_err(|error| template_error(name, &compiled_template, &error))?;
        let is_predefined = |name: &str| {
            let root = name.split('.').next().unwrap_or_default();
            root.starts_with("__")
                || functions::own_function_names().any(|candidate| candidate == root)
                || ENGINE_NAMES.contains(&root)
        };
        let includes_fields = true;
        let mut names: Vec<String> = template.undeclared_variables(includes_fields).into_iter().collect();
        names.retain(|name| !is_predefined(name));
        names.sort();
        Ok(names)
    }

    /// Returns the migration of a text to Jinja, cached like templates.
    #[must_use]
    pub fn migrate(&self, source: &str) -> Arc<MigratedText> {
        let lock = || self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(migrated_text) = lock().migrations.get(source) {
            return Arc::clone(migrated_text);
        }
        let migrated_text = Arc::new(macros::migrate(source));
        // Longer texts are refused as templates, so they are not cached.
        if source.len() <= self.0.limits.source {
            let mut cache = lock();
            if cache.migrations.len() >= self.0.limits.templates {
                cache.migrations.clear();
            }
            cache.migrations.insert(source.into(), Arc::clone(&migrated_text));
        }
        migrated_text
    }

    /// Returns the names that a template sets for later templates of the prompt, in the order of its
    /// statements.
    ///
    /// # Errors
    /// Same as [`Engine::check`].
    pub(crate) fn list_assigned(&self, name: &str, source: &str) -> Result<Vec<String>> {
        Ok(self.compile(name, source, None)?.rewritten_source.assigned_names.clone())
    }

    /// Compiles a template, or returns it from the cache. With `budget` the compilation is charged.
    fn compile(&self, name: &str, source: &str, budget: Option<&Budget>) -> Result<Arc<CompiledTemplate>> {
        let limit = self.0.limits.source;
        if source.len() > limit {
            let message =
                format!("template `{}` has {} bytes; at most {limit} are read", clip(name, 60), source.len());
            return Err(Error::invalid(message).with_code("limit_exceeded"));
        }
        let source = rewrite::replace_source_marks(source);
        // No change is left half done when a thread panics, so poison is ignored. The lock is released while
        // a template compiles, so that other threads keep access to the cache.
        let lock = || self.0.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cache = lock();
        if let Some(compiled_template) = cache.templates.get(&*source) {
            self.0.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Arc::clone(compiled_template));
        }
        self.0.misses.fetch_add(1, Ordering::Relaxed);
        if cache.templates.len() >= self.0.limits.templates {
            *cache = TemplateCache::new(self.0.mode, &self.0.limits);
        }
        let (env, sources) = (Arc::clone(&cache.env), Arc::clone(&cache.sources));
        drop(cache);
        let rewritten_source = rewrite::rewrite(&source).map_err(|error| with_template_name(name, error))?;
        // The charge covers the compiled code, the source and the rewritten source, which all stay in memory.
        let part_count = rewritten_source.part_count as u64;
        let size = part_count * PART_BYTES + 4 * source.len() as u64;
        if budget.is_some_and(|budget| !budget.charge_bytes(size) || !budget.spend(part_count)) {
            let message =
                format!("the templates of the prompt are too long, `{}` among them", clip(name, 60));
            return Err(Error::invalid(message).with_code("limit_exceeded"));
        }
        let hash: [u8; 32] = Sha256::digest(source.as_bytes()).into();
        let key = hash.iter().fold(String::new(), |mut key, byte| {
            let _ = write!(key, "{byte:02x}");
            key
        });
        let source: Arc<str> = source.into();
        let mut sources = sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.insert(key.clone(), rewritten_source.text.clone());
        drop(sources);
        let compiled_template =
            Arc::new(CompiledTemplate { env, source: Arc::clone(&source), hash, key, rewritten_source });
        if let Err(error) = compiled_template.env.get_template(&compiled_template.key) {
            return Err(template_error(name, &compiled_template, &error));
        }
        if let Some(offset) = compiled_template.rewritten_source.unparsed_offset {
            let location = Location::from_offset(&compiled_template.source, offset);
            let message = "this code cannot be read";
            return Err(with_template_name(
                name,
                Error::malformed(message, Some(location)).with_code("template_syntax"),
            ));
        }
        lock().templates.insert(source, Arc::clone(&compiled_template));
        Ok(compiled_template)
    }

    /// Renders a template in a scope.
    fn render(&self, scope: &Arc<PromptScope>, name: &str, source: &str) -> Result<String> {
        let compiled_template = self.compile(name, source, Some(&scope.budget))?;
        let source = Arc::clone(&compiled_template.source);
        let frame = TemplateFrame {
            name: name.into(),
            source,
            hash: compiled_template.hash,
            is_original_used: false,
        };
        if !scope.enter(frame) {
            let message = format!("`{}` is nested too deeply, or the prompt costs too much", clip(name, 60));
            return Err(Error::invalid(message).with_code("limit_exceeded"));
        }
        let budget = scope.budget.clone();
        let mut output = BoundedOutput {
            bytes: Vec::new(),
            limit: self.0.limits.output,
            fault: None,
            charged_bytes: 0,
            budget,
        };
        let template = compiled_template.env.get_template(&compiled_template.key);
        let fuel_result = template.and_then(|template| {
            let output_state = template.render_captured_to(scope.root(), &mut output)?;
            Ok(output_state.state().fuel_levels().map_or(0, |(consumed, _)| consumed))
        });
        // A template that failed is charged as if it had used all its steps.
        scope.leave(*fuel_result.as_ref().unwrap_or(&self.0.limits.fuel));
        let limit_error = |problem: &str| {
            Error::invalid(format!("template `{}` {problem}", clip(name, 60))).with_code("limit_exceeded")
        };
        let output_error = || limit_error(&format!("comes to more than {} bytes", self.0.limits.output));
        if scope.budget.is_stopped() {
            return Err(limit_error("takes too long, or nobody waits for it"));
        }
        match output.fault {
            Some(OutputFault::Limit) => return Err(output_error()),
            Some(OutputFault::Memory) => {
                return Err(limit_error("takes more memory than the prompt has left"));
            }
            Some(OutputFault::Steps) => return Err(limit_error("takes more steps than the prompt has left")),
            None => {}
        }
        if let Err(error) = fuel_result {
            return Err(scope
                .take_field_error()
                .unwrap_or_else(|| template_error(name, &compiled_template, &error)));
        }
        let text = String::from_utf8(output.bytes)
            .unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into_owned());
        marks::resolve_marks(text, self.0.limits.output).ok_or_else(output_error)
    }
}

/// Bytes charged for each tag and token of a template that is compiled.
const PART_BYTES: u64 = 200;

/// Names that minijinja itself defines.
const ENGINE_NAMES: &[&str] = &["range", "dict", "namespace", "loop", "true", "false", "none"];

/// Names of the filters available to templates.
#[doc(hidden)]
#[must_use]
pub fn filter_names() -> Vec<&'static str> {
    let mut names: Vec<&str> =
        builtins::filter_names().into_iter().chain(filters::OWN_FILTERS.iter().copied()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Names of the tests available to templates.
#[doc(hidden)]
pub fn test_names() -> impl Iterator<Item = &'static str> {
    builtins::TESTS.iter().copied()
}

/// Names of the functions available to templates, including those of minijinja.
#[doc(hidden)]
pub fn function_names() -> impl Iterator<Item = &'static str> {
    functions::own_function_names().chain(builtins::FUNCTIONS.iter().copied())
}

impl TemplateCache {
    /// Creates an empty cache with a new environment.
    fn new(mode: UndefinedMode, limits: &JinjaLimits) -> TemplateCache {
        let sources: Arc<Mutex<HashMap<String, String>>> = Arc::default();
        let mut env = environment(mode, limits);
        let stored_sources = Arc::clone(&sources);
        // Each source is compiled once, so it is taken out of the map.
        env.set_loader(move |key| {
            let mut stored_sources = stored_sources.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(stored_sources.remove(key))
        });
        env.set_auto_reload(false);
        TemplateCache { env: Arc::new(env), sources, templates: HashMap::new(), migrations: HashMap::new() }
    }
}

/// Creates the sandboxed environment. It has the functions and filters of minijinja and of this library,
/// which have no access to files, the network or other things outside.
fn environment(mode: UndefinedMode, limits: &JinjaLimits) -> Environment<'static> {
    // Starts empty, so that nothing exists without a stated cost.
    let mut env = Environment::empty();
    env.set_undefined_behavior(match mode {
        UndefinedMode::Lenient => UndefinedBehavior::Chainable,
        UndefinedMode::Strict => UndefinedBehavior::Strict,
    });
    env.set_auto_escape_callback(|_| AutoEscape::None);
    env.set_formatter(|out, state, value| {
        let text = budget::print_charged(state, value)?;
        // Output may be captured into a variable and then stays in memory.
        budget::charge_bytes(state, text.len() as u64)?;
        out.write_str(&text)?;
        Ok(())
    });
    env.set_fuel(Some(limits.fuel));
    env.set_recursion_limit(limits.recursion);
    env.set_debug(true);
    // Keeps the line break at the end of a template.
    let mut syntax = SyntaxConfig::builder();
    if let Ok(syntax) = syntax.keep_trailing_newline(true).build() {
        env.set_syntax(syntax);
    }
    builtins::register(&mut env);
    operators::register(&mut env);
    filters::register(&mut env);
    functions::register(&mut env);
    env
}

/// Returns true if a text is a valid template, whatever it costs to render.
pub(crate) fn is_valid_template(source: &str) -> bool {
    find_syntax_error(source).is_none()
}

/// Returns the reason why a text is not a valid template; `None` if it is valid.
pub(crate) fn find_syntax_error(source: &str) -> Option<String> {
    let mut env = Environment::empty();
    env.set_recursion_limit(JinjaLimits::default().recursion);
    match rewrite::rewrite(source) {
        Err(error) => Some(error.to_string()),
        Ok(rewritten_source) => {
            let error = env.template_from_str(&rewritten_source.text).err()?;
            Some(error.detail().map_or_else(|| error.to_string(), str::to_owned))
        }
    }
}

/// Returns true if a name belongs to the context or to minijinja (F-020).
pub(crate) fn is_context_name(name: &str) -> bool {
    scope::CONTEXT_NAMES.contains(&name) || ENGINE_NAMES.contains(&name)
}

/// Returns true if a function of this library has this name. The functions of minijinja are among the names
/// of [`is_context_name`].
pub(crate) fn is_function_name(name: &str) -> bool {
    functions::own_function_names().any(|candidate| candidate == name)
}

/// Returns true if a filter has this name.
pub(crate) fn is_filter_name(name: &str) -> bool {
    filters::OWN_FILTERS.contains(&name) || builtins::filter_names().contains(&name)
}

/// Returns true if a test has this name.
pub(crate) fn is_test_name(name: &str) -> bool {
    builtins::TESTS.contains(&name)
}

/// Reason why output is refused.
#[derive(Clone, Copy)]
enum OutputFault {
    /// The output is longer than the limit.
    Limit,
    /// The budget has too few bytes.
    Memory,
    /// The budget has no steps, or the rendering was stopped.
    Steps,
}

/// Output buffer with a limit.
struct BoundedOutput {
    bytes: Vec<u8>,
    /// Maximum length of the output in bytes.
    limit: usize,
    /// Set when a write failed.
    fault: Option<OutputFault>,
    /// Number of bytes that have been charged.
    charged_bytes: usize,
    budget: Budget,
}

impl BoundedOutput {
    /// Records the fault and returns the error of the write.
    fn refuse(&mut self, fault: OutputFault) -> io::Error {
        self.fault = Some(fault);
        io::Error::other("the output is refused")
    }
}

impl io::Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(self.refuse(OutputFault::Limit));
        }
        // Charged in blocks, before the buffer grows.
        while self.charged_bytes < self.bytes.len() + bytes.len() {
            let block = (self.bytes.len() + bytes.len() - self.charged_bytes).max(4 << 10);
            if !self.budget.charge_bytes(block as u64) {
                return Err(self.refuse(OutputFault::Memory));
            }
            if !self.budget.has_steps_left() {
                return Err(self.refuse(OutputFault::Steps));
            }
            self.charged_bytes += block;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
