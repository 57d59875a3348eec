//! State shared by the templates of one prompt while they are rendered in order (F-027): the temporary scope
//! (variables that templates set and that end with the prompt), requested writes, warnings and random
//! numbers.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use minijinja::value::{Object, Serde, Value};
use minijinja::{Error, ErrorKind, State};
use rand::rngs::ChaCha8Rng;
use serde_json::Map;

use super::budget::{self, Budget};
use super::context::PromptContext;
use super::values::{
    self, GlobalStateObject, LenientMap, MessageList, MissingValue, TimeObject, missing_value,
};
use super::{Effect, Engine, TemplateWarning, chance, participants, source, text};
use crate::macros::{self, MigratedText};
use tambour::error::Location;

/// Names that always come from the context, even if a template sets a variable of the same name (F-020).
pub(super) const CONTEXT_NAMES: &[&str] = &[
    "user",
    "char",
    "state",
    "state_desc",
    "global_state",
    "history",
    "context",
    "display_context",
    "config",
    "instruct",
    "group",
    "not_char",
    "now",
    "user_input",
    "idle_duration",
    "is_mobile",
    "last_generation",
    "system_prompt",
    "anchor_before",
    "anchor_after",
    "lore_before",
    "lore_after",
    "pipe_result",
];

/// Internal variable under which functions find the scope.
const SCOPE_VARIABLE: &str = "__scope";

/// Maximum nesting depth of field texts: texts of the context with macros, such as `char.description`, that
/// refer to each other.
const MAX_FIELD_DEPTH: usize = 8;

/// Maximum number of field texts that one prompt renders.
const MAX_FIELDS: usize = 10_000;

/// Maximum number of warnings that are stored; further ones are only counted.
const MAX_WARNINGS: usize = 1_000;

/// Scope that the templates of one prompt share.
#[derive(Debug)]
pub(super) struct PromptScope {
    pub(super) engine: Engine,
    pub(super) context: PromptContext,
    /// The values of [`CONTEXT_NAMES`].
    context_values: HashMap<&'static str, Value>,
    /// Budget that all templates of the prompt share.
    pub(super) budget: Budget,
    state: Mutex<ScopeState>,
}

/// Part of the scope that templates change.
#[derive(Debug)]
struct ScopeState {
    /// Variables of the temporary scope by name, each with the number of its first assignment.
    local_variables: HashMap<String, (usize, Value)>,
    /// Keys of the state that are hidden for the rest of this prompt.
    hidden_state_keys: HashSet<String>,
    /// Number of assignments so far; gives variables their order.
    assignment_count: usize,
    /// Global variables, including requested writes.
    global_variables: Map<String, serde_json::Value>,
    /// Values of the context and the state that were read, converted for minijinja.
    read_values: HashMap<String, Value>,
    /// Global variables that were read, converted for minijinja.
    read_globals: HashMap<String, Value>,
    /// Names of the global variables; reset by a write.
    global_names: Option<Arc<[Value]>>,
    effects: Vec<Effect>,
    warnings: Vec<TemplateWarning>,
    /// Hashes of the warnings, so that each is stored once.
    warning_hashes: HashSet<u64>,
    /// Number of warnings beyond [`MAX_WARNINGS`].
    dropped_warnings: usize,
    rng: ChaCha8Rng,
    /// Templates that are being rendered, innermost last.
    frames: Vec<TemplateFrame>,
    /// Number of field texts rendered so far.
    rendered_field_count: usize,
    /// Names and texts of the fields that are being rendered.
    open_fields: Vec<(String, Arc<str>)>,
    /// First error of a field text, with which the surrounding template fails.
    field_error: Option<tambour::error::Error>,
}

/// A template that is being rendered.
#[derive(Clone, Debug)]
pub(super) struct TemplateFrame {
    pub(super) name: Arc<str>,
    pub(super) source: Arc<str>,
    /// Hash of the source; `pick` depends on it.
    pub(super) hash: [u8; 32],
    /// True once the template has printed the text that it replaces.
    pub(super) is_original_used: bool,
}

impl PromptScope {
    /// Creates the scope of one prompt. `random_seed` seeds `random` and `roll` if the context has no seed.
    pub(super) fn new(
        engine: Engine,
        context: PromptContext,
        random_seed: u64,
        budget: Budget,
    ) -> Arc<PromptScope> {
        let seed = context.seed.clone().unwrap_or_else(|| format!("#{random_seed}"));
        let chat = context.get("chat_id").map(ToString::to_string).unwrap_or_default();
        let global = context.get("global_state").and_then(|value| value.as_object()).cloned();
        let state = ScopeState {
            local_variables: HashMap::new(),
            hidden_state_keys: HashSet::new(),
            assignment_count: 0,
            global_variables: global.unwrap_or_default(),
            read_values: HashMap::new(),
            read_globals: HashMap::new(),
            global_names: None,
            effects: Vec::new(),
            warnings: Vec::new(),
            warning_hashes: HashSet::new(),
            dropped_warnings: 0,
            rng: chance::seeded_rng(&[b"random", seed.as_bytes(), chat.as_bytes()]),
            frames: Vec::new(),
            rendered_field_count: 0,
            open_fields: Vec::new(),
            field_error: None,
        };
        Arc::new_cyclic(|scope| {
            let context_values = context_values(&context, scope);
            PromptScope { engine, context, context_values, budget, state: Mutex::new(state) }
        })
    }

    /// Locks the state that templates change.
    fn lock(&self) -> MutexGuard<'_, ScopeState> {
        // No change is left half done when a thread panics, so poison is ignored.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the scope of the template that is being rendered.
    pub(super) fn from_state(state: &State<'_, '_>) -> Result<Arc<PromptScope>, Error> {
        let missing_error = || Error::new(ErrorKind::InvalidOperation, "this function needs a prompt");
        PromptScope::find(state).ok_or_else(missing_error)
    }

    /// Like [`PromptScope::from_state`], but returns `None` for an expression outside of a prompt.
    pub(super) fn find(state: &State<'_, '_>) -> Option<Arc<PromptScope>> {
        let handle = state.lookup(SCOPE_VARIABLE)?;
        handle.downcast_object_ref::<ScopeObject>().map(|handle| Arc::clone(&handle.0))
    }

    /// Returns the root object with the variables of a template.
    pub(super) fn root(self: &Arc<PromptScope>) -> Value {
        Value::from_object(RootVariables(Arc::clone(self)))
    }

    /// Looks up a variable by name: reserved names of the context, the temporary scope, other keys of the
    /// context, the state.
    fn lookup(&self, name: &str) -> Option<Value> {
        if name.starts_with("__") {
            // Internal names: no variable can take their place.
            return None;
        }
        if let Some(value) = self.context_values.get(name) {
            if name == "pipe_result" && value.downcast_object_ref::<MissingValue>().is_some() {
                self.warn("pipe_missing", "there is no pipe result", None);
            }
            return Some(value.clone());
        }
        self.local_variable(name).or_else(|| self.read_value(name).filter(|_| !self.is_hidden(name)))
    }

    /// Looks up a key of the context, then of the state.
    pub(super) fn read_value(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.lock().read_values.get(name) {
            return Some(value.clone());
        }
        let json_value = self.context.values.get(name).or_else(|| self.context.state.get(name))?;
        let value = Value::from(Serde(json_value));
        self.lock().read_values.insert(name.to_owned(), value.clone());
        Some(value)
    }

    /// Looks up a key of the state.
    pub(super) fn read_state(&self, name: &str) -> Option<Value> {
        // The NUL, with which no variable name begins, keeps the state apart from the context.
        let cache_key = format!("\0{name}");
        if let Some(value) = self.lock().read_values.get(&cache_key) {
            return Some(value.clone());
        }
        let value = self.context.state.get(name).map(|value| Value::from(Serde(value)))?;
        self.lock().read_values.insert(cache_key, value.clone());
        Some(value)
    }

    /// Returns true if the state has this key.
    pub(super) fn has_state_key(&self, name: &str) -> bool {
        self.context.state.get(name).is_some()
    }

    /// Looks up a variable of the temporary scope.
    pub(super) fn local_variable(&self, name: &str) -> Option<Value> {
        self.lock().local_variables.get(name).map(|(_, value)| value.clone())
    }

    /// Sets a variable of the temporary scope.
    pub(super) fn set_local(&self, name: &str, value: Value) {
        let mut state = self.lock();
        state.assignment_count += 1;
        let order = state.local_variables.get(name).map_or(state.assignment_count, |(order, _)| *order);
        state.local_variables.insert(name.to_owned(), (order, value));
        state.hidden_state_keys.remove(name);
    }

    /// Removes a variable of the temporary scope and hides the state key of the same name.
    pub(super) fn delete_local(&self, name: &str) {
        let mut state = self.lock();
        state.local_variables.remove(name);
        if self.has_state_key(name) {
            state.hidden_state_keys.insert(name.to_owned());
        }
    }

    /// Returns true if a key of the state is hidden for this prompt.
    pub(super) fn is_hidden(&self, name: &str) -> bool {
        self.lock().hidden_state_keys.contains(name)
    }

    /// Returns the temporary scope, in the order of the first assignments.
    pub(super) fn locals(&self) -> Map<String, serde_json::Value> {
        let state = self.lock();
        let mut variables: Vec<(&String, &(usize, Value))> = state.local_variables.iter().collect();
        variables.sort_by_key(|(_, (order, _))| *order);
        variables
            .into_iter()
            .map(|(name, (_, value))| (name.clone(), text::to_json(value).unwrap_or_default()))
            .collect()
    }

    /// Applies `read` to a global variable, including requested writes.
    pub(super) fn with_global<T>(&self, name: &str, read: impl FnOnce(&serde_json::Value) -> T) -> Option<T> {
        self.lock().global_variables.get(name).map(read)
    }

    /// Returns a global variable as a minijinja value.
    pub(super) fn global_variable(&self, name: &str) -> Option<Value> {
        let mut state = self.lock();
        if let Some(value) = state.read_globals.get(name) {
            return Some(value.clone());
        }
        let value = state.global_variables.get(name).map(|value| Value::from(Serde(value)))?;
        state.read_globals.insert(name.to_owned(), value.clone());
        Some(value)
    }

    /// Returns the names of all global variables.
    pub(super) fn global_names(&self) -> Arc<[Value]> {
        let mut state = self.lock();
        let ScopeState { global_variables, global_names, .. } = &mut *state;
        let list_names = || global_variables.keys().map(|key| Value::from(key.as_str())).collect();
        Arc::clone(global_names.get_or_insert_with(list_names))
    }

    /// Counts the values and bytes of all global variables.
    pub(super) fn global_weight(&self) -> (u64, u64) {
        let state = self.lock();
        state.global_variables.iter().fold((1, 0), |(values, bytes), (key, value)| {
            let (value_count, text_bytes) = budget::weigh_json(value);
            (values + value_count + 1, bytes + text_bytes + key.len() as u64)
        })
    }

    /// Returns true if there are global variables.
    pub(super) fn has_globals(&self) -> bool {
        !self.lock().global_variables.is_empty()
    }

    /// Returns all global variables, including requested writes.
    pub(super) fn globals(&self) -> Map<String, serde_json::Value> {
        self.lock().global_variables.clone()
    }

    /// Requests a write of a global variable (F-023); `None` removes the variable.
    ///
    /// # Errors
    /// The budget has no room or no steps for the write.
    pub(super) fn set_global(&self, name: &str, value: Option<serde_json::Value>) -> Result<(), Error> {
        let (values, bytes) = value.as_ref().map_or((0, 0), budget::weigh_json);
        // Twice: for the variable and for its effect, whose own entries take the four additional slots.
        let size = (name.len() as u64 + bytes + (values + 4) * budget::SLOT_BYTES).saturating_mul(2);
        if !self.budget.charge_bytes(size) {
            return Err(budget::memory_error());
        }
        let mut state = self.lock();
        // The list of names is built again on the next read: a step for every four names.
        if !self.budget.spend(state.global_variables.len() as u64 / 4) {
            return Err(self.budget.steps_error());
        }
        state.global_names = None;
        state.read_globals.remove(name);
        let name = name.to_owned();
        match value.clone() {
            Some(value) => state.global_variables.insert(name.clone(), value),
            None => state.global_variables.shift_remove(&name),
        };
        state.effects.push(Effect::SetGlobal { name, value: value.unwrap_or_default() });
        Ok(())
    }

    /// Requests that the model call bans a word (F-035).
    ///
    /// # Errors
    /// The budget has no room for the request.
    pub(super) fn ban(&self, word: &str) -> Result<(), Error> {
        if !self.budget.charge_bytes(word.len() as u64 + 2 * budget::SLOT_BYTES) {
            return Err(budget::memory_error());
        }
        self.lock().effects.push(Effect::Banned { word: word.to_owned() });
        Ok(())
    }

    /// Runs a function with the random number generator of the prompt.
    pub(super) fn with_random<T>(&self, run: impl FnOnce(&mut ChaCha8Rng) -> T) -> T {
        run(&mut self.lock().rng)
    }

    /// Returns an index below `count` that stays the same for this call site of this template in this chat.
    pub(super) fn stable_index(&self, call_site: Option<usize>, count: usize) -> usize {
        let chat = self.context.get("chat_id").map(ToString::to_string).unwrap_or_default();
        let seed = self.context.seed.clone().unwrap_or_default();
        let hash = self.frame().map(|frame| frame.hash).unwrap_or_default();
        let site = (call_site.unwrap_or(usize::MAX) as u64).to_le_bytes();
        let mut rng = chance::seeded_rng(&[b"pick", chat.as_bytes(), seed.as_bytes(), &hash, &site]);
        chance::random_below(&mut rng, count)
    }

    /// Returns the original text that the current template replaces, as a card's text may replace the user's.
    /// The context holds it under `original`: one text for all templates, or a map of texts by template name.
    /// A template can read the text once; after that, it is empty.
    pub(super) fn original_text(self: &Arc<PromptScope>) -> Value {
        let mut state = self.lock();
        let Some(frame) = state.frames.last_mut().filter(|frame| !frame.is_original_used) else {
            return Value::from("");
        };
        let text = match self.context.get("original") {
            Some(serde_json::Value::Object(texts)) => texts.get(&*frame.name),
            text => text,
        };
        let Some(text) = text.and_then(serde_json::Value::as_str) else { return Value::from("") };
        frame.is_original_used = true;
        drop(state);
        self.render_field("original", &text.into())
    }

    /// Warns that the expression at this place of the current template printed a missing value.
    pub(super) fn warn_undefined(&self, at: usize) {
        let message = format!("`{}` is not defined", self.expression_at(at));
        self.warn("variable_undefined", message, Some(at));
    }

    /// Returns the expression at a place of the current template, clipped for a message.
    pub(super) fn expression_at(&self, at: usize) -> String {
        let frame = self.frame();
        let expression = frame.as_ref().map(|frame| source::expression_at(&frame.source, at));
        tambour::finding::clip(expression.unwrap_or_default(), 60).into_owned()
    }

    /// Records a warning at a place of the current template, once.
    pub(super) fn warn(&self, code: &'static str, message: impl Into<String>, at: Option<usize>) {
        let frame = self.frame();
        let message = message.into();
        let mut hasher = DefaultHasher::new();
        (code, frame.as_ref().map(|frame| (&frame.name, frame.hash)), at, &message).hash(&mut hasher);
        let mut state = self.lock();
        // The hashes of dropped warnings are not stored, so that the set stays bounded.
        if state.warning_hashes.contains(&hasher.finish()) {
            return;
        }
        if state.warnings.len() >= MAX_WARNINGS {
            state.dropped_warnings += 1;
            return;
        }
        state.warning_hashes.insert(hasher.finish());
        let location = frame.as_ref().zip(at).map(|(frame, at)| Location::from_offset(&frame.source, at));
        state.warnings.push(TemplateWarning {
            code,
            template: frame.map(|frame| frame.name.to_string()).unwrap_or_default(),
            line: location.as_ref().map(|location| location.line),
            column: location.as_ref().map(|location| location.column),
            message,
        });
    }

    /// Returns the stored warnings and the number of dropped ones.
    pub(super) fn warnings(&self) -> (Vec<TemplateWarning>, usize) {
        let state = self.lock();
        (state.warnings.clone(), state.dropped_warnings)
    }

    /// Returns the effects that templates have requested.
    pub(super) fn effects(&self) -> Vec<Effect> {
        self.lock().effects.clone()
    }

    /// Returns the template that is being rendered, the innermost one.
    pub(super) fn frame(&self) -> Option<TemplateFrame> {
        self.lock().frames.last().cloned()
    }

    /// Enters a template; returns false if the nesting or the budget does not allow another one.
    pub(super) fn enter(&self, frame: TemplateFrame) -> bool {
        let mut state = self.lock();
        let has_room = state.frames.len() <= MAX_FIELD_DEPTH && self.budget.has_steps_left();
        if has_room {
            state.frames.push(frame);
        }
        has_room
    }

    /// Leaves a template that used `steps` steps.
    pub(super) fn leave(&self, steps: u64) {
        self.lock().frames.pop();
        self.budget.spend(steps);
    }

    /// Takes the error of a field text; the surrounding template fails with it.
    pub(super) fn take_field_error(&self) -> Option<tambour::error::Error> {
        self.lock().field_error.take()
    }

    /// Migrates the macros of a text to Jinja. Records only one of the migration's warnings: that the text
    /// has too many macros and is left unchanged.
    pub(super) fn migrate(&self, source: &str) -> Arc<MigratedText> {
        let migrated_text = self.engine.migrate(source);
        for warning in migrated_text.warnings.iter().filter(|warning| warning.code == "macro_limit") {
            self.warn(warning.code, warning.message.clone(), None);
        }
        migrated_text
    }

    /// Renders a field text: migrates its macros, then renders it in this scope (M-021).
    pub(super) fn render_field(self: &Arc<PromptScope>, name: &str, source: &Arc<str>) -> Value {
        // The text is searched for macros, and looked up in the cache by its full content.
        if !self.budget.spend_read(source.len() as u64) {
            return Value::from(self.budget.steps_error());
        }
        if !self.budget.charge_bytes(source.len() as u64) {
            return Value::from(budget::memory_error());
        }
        if !macros::may_contain_macros(source) {
            return Value::from(&**source);
        }
        // A text that refers to itself prints nothing there.
        let is_same = |(other, text): &(String, Arc<str>)| other == name && text == source;
        if self.lock().open_fields.iter().any(is_same) {
            let excerpt = tambour::finding::clip(name, 60);
            self.warn(
                "field_within_itself",
                format!("the text of `{excerpt}` refers to itself, so it prints nothing"),
                None,
            );
            return Value::from("");
        }
        let is_over_limit = {
            let mut state = self.lock();
            state.rendered_field_count += 1;
            state.rendered_field_count > MAX_FIELDS
        };
        if is_over_limit {
            self.warn("limit_exceeded", format!("`{name}`: more than {MAX_FIELDS} texts with macros"), None);
            return Value::from("");
        }
        let migrated_text = self.migrate(source);
        self.lock().open_fields.push((name.to_owned(), Arc::clone(source)));
        let result = self.engine.render(self, name, &migrated_text.text);
        self.lock().open_fields.pop();
        match result {
            Ok(text) => Value::from(text),
            Err(error) => {
                let message = error.to_string();
                self.lock().field_error.get_or_insert(error);
                Value::from(Error::new(ErrorKind::BadInclude, message))
            }
        }
    }
}

/// Returns the values of [`CONTEXT_NAMES`].
fn context_values(context: &PromptContext, scope: &Weak<PromptScope>) -> HashMap<&'static str, Value> {
    let plain_value =
        |name: &str| context.get(name).map_or_else(missing_value, |value| Value::from(Serde(value)));
    let lenient_value = |name: &str| LenientMap::from_context(context.get(name));
    let participants = participants::Participants::new(context, scope);
    let global = Value::from_object(GlobalStateObject(scope.clone()));
    let description = values::StateDescription::from_context(context);
    CONTEXT_NAMES
        .iter()
        .map(|&name| {
            let value = match name {
                "user" => participants.user(),
                "char" => participants.character(),
                "group" => participants.group(),
                "not_char" => participants.other_names(),
                "state" => {
                    let value = Value::from(Serde(&context.state));
                    Value::from_object(values::StateObject { value, global_state: global.clone() })
                }
                "state_desc" => Value::from_object(description.clone()),
                "global_state" => global.clone(),
                "history" | "context" | "display_context" => MessageList::from_context(context.get(name)),
                "config" | "instruct" | "last_generation" => lenient_value(name),
                "now" => {
                    context.now.clone().map_or_else(missing_value, |now| Value::from_object(TimeObject(now)))
                }
                name => plain_value(name),
            };
            (name, value)
        })
        .collect()
}

/// Engine object that gives functions access to the scope.
#[derive(Debug)]
struct ScopeObject(Arc<PromptScope>);

impl Object for ScopeObject {}

/// Engine object with the variables of a template.
#[derive(Debug)]
struct RootVariables(Arc<PromptScope>);

impl Object for RootVariables {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if key == SCOPE_VARIABLE {
            return Some(Value::from_object(ScopeObject(Arc::clone(&self.0))));
        }
        self.0.lookup(key)
    }
}
