//! Calls of the model: the prompt, rendered anew in every round (S-042), with the data it was made from.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::fit;
use super::machine::Env;
use super::reader::Reader;
use super::state::{Dialogue, Running, Said, Stage};
use super::words;
use crate::script::{Action, ActionKind, AnswerForm, AnswerKind};
use crate::template::{self, Template, Warning, in_language, script_values, system_values};
use tambour::dialect;
use tambour::event::Failure;
use tambour::exit::Criteria;
use tambour::options::Options;
use tambour::texts::{Language, bilingual};

/// Default templates by type of action.
const SAY: &str = "ai-say-mainline-a-introduce-concept";
const ASK: &str = "ai-ask-default";
const THINK: &str = "ai-think-default";

/// Message to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `user`; `system` and `assistant` are for hooks and later stages.
    pub role: String,
    /// Text of the message.
    pub content: String,
}

/// Request to a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// Kind of the reply.
    pub kind: CallKind,
    /// The prompt.
    pub messages: Vec<Message>,
    /// Sampling temperature (S-050).
    pub temperature: f64,
    /// Token limit of the reply (S-050).
    pub max_tokens: u32,
    /// Id of the template that the prompt was rendered from.
    pub template_id: String,
    /// SHA-256 of the template's text (S-044).
    pub template_hash: String,
    /// Warnings from rendering the template (S-038).
    pub warnings: Vec<Warning>,
    /// Round that the reply answers, from 1.
    pub round: u32,
    /// Last round of the action; it ends after that in any case.
    pub max_rounds: Option<u32>,
    /// Number of earlier attempts in this round.
    pub attempt: u32,
    /// Path of the action in the script.
    pub path: String,
}

/// Kind of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallKind {
    /// Answer of a round of `ai_say`, in the dialect of that name.
    Say {
        /// Criteria for ending the action before its last round.
        criteria: Criteria,
    },
    /// Answer of a round of `ai_ask`.
    Ask {
        /// Required form of the answer.
        form: AnswerForm,
        /// The question with its variables filled in.
        question: String,
    },
    /// Object with the values of these variables.
    Think {
        /// Names of the variables.
        variables: Vec<String>,
    },
}

impl CallKind {
    /// Returns the name of the reply's form: `ai_say`, `ai_ask` or `ai_think`. Recordings are selected by it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            CallKind::Say { .. } => "ai_say",
            CallKind::Ask { .. } => "ai_ask",
            CallKind::Think { .. } => "ai_think",
        }
    }
}

impl Call {
    /// Creates a reader of the reply; `options` are the reading options.
    #[must_use]
    pub fn reader(&self, options: &Options) -> Reader {
        Reader::new(self, options)
    }

    /// Returns a JSON Schema for constrained decoding, for a question whose answer is not text. `options` are
    /// the reading options.
    #[must_use]
    pub fn schema(&self, options: &Options) -> Option<Value> {
        match &self.kind {
            CallKind::Ask { form, .. } if form.kind != AnswerKind::Text => {
                Some(fit::schema(form, &dialect::role(options)))
            }
            _ => None,
        }
    }
}

/// Builds the call that an action needs now.
///
/// # Errors
/// The action lacks a required field, or its template does not exist (S-022).
pub(super) fn call(
    dialogue: &Dialogue,
    action: &Action,
    running: &Running,
    env: &Env<'_>,
) -> Result<Call, Failure> {
    let (attempt, because) = match &running.stage {
        Stage::Model { attempt, because } => (*attempt, because.as_deref()),
        _ => (0, None),
    };
    let variables = dialogue.scopes.visible();
    let incomplete = |name: &str| {
        let message = bilingual!(
            env.settings.texts.language,
            "`{}` 没有 `{}`，无法执行",
            "`{}` has no `{}`, so it cannot be carried out",
            action.path,
            name
        );
        Failure::new("action_incomplete", message, false)
    };
    let (mut kind, content, max_rounds, own) = match &action.kind {
        ActionKind::Say(say) => {
            let kind = CallKind::Say { criteria: say.exit_criteria.clone() };
            (kind, say.content.as_str(), Some(say.max_rounds), SAY)
        }
        ActionKind::Ask(ask) => {
            let question = ask.question.as_deref().ok_or_else(|| incomplete("question"))?;
            let kind = CallKind::Ask { form: ask.answer.clone(), question: String::new() };
            (kind, question, Some(ask.max_rounds), ASK)
        }
        ActionKind::Think(think) => {
            let prompt = think.prompt.as_deref().ok_or_else(|| incomplete("prompt"))?;
            let variables = think.output.iter().map(|(name, _)| name.clone()).collect();
            (CallKind::Think { variables }, prompt, None, THINK)
        }
        ActionKind::Client(_) => return Err(incomplete("a prompt")),
    };
    let template = template_of(action, own, &variables, running, env)?;
    let (id, template) = template;
    let chat_history = history(&dialogue.history, env);
    let threshold = match &kind {
        CallKind::Say { criteria } => number(criteria.understanding_threshold()),
        _ => None,
    };
    let round = template::Round {
        now: env.now,
        chat_history: &chat_history,
        understanding_threshold: threshold,
        current_round: running.round,
        max_rounds,
    };
    let system = system_values(&variables, &round);
    let (mut script, mut warnings) = script_values(&variables, content, &system);
    if let ActionKind::Think(think) = &action.kind {
        script.insert("output_fields".to_owned(), output_fields(&think.output, &script, &system).into());
    }
    let mut rendered = template.render(&script, &system);
    warnings.extend(rendered.warnings);
    for warning in &mut warnings {
        warning.message = warning.told(env.settings.texts.language);
    }
    let language = env.settings.texts.language;
    if let CallKind::Ask { form, question } = &mut kind {
        question.push_str(script.get("topic_content").and_then(Value::as_str).unwrap_or_default());
        rendered.text.push_str(&fit::told(form, language).unwrap_or_default());
    }
    if attempt > 0 {
        rendered.text.push_str(words::again(because, language));
    }
    Ok(Call {
        kind,
        messages: vec![Message { role: "user".to_owned(), content: rendered.text }],
        temperature: env.settings.temperature,
        max_tokens: env.settings.max_tokens,
        template_id: id,
        template_hash: template.hash(),
        warnings,
        round: running.round + 1,
        max_rounds,
        attempt,
        path: action.path.clone(),
    })
}

/// Finds the template of an action: the hook's, the author's, or the default of its type in the configured
/// language.
fn template_of(
    action: &Action,
    own: &str,
    variables: &Map<String, Value>,
    running: &Running,
    env: &Env<'_>,
) -> Result<(String, Template), Failure> {
    let default = match &action.template {
        Some(id) => id.clone(),
        None => in_language(own, env.settings.texts.language),
    };
    let moment = super::Moment { action, round: running.round + 1, variables };
    let id = env.hooks.template(&moment, &default).unwrap_or(default);
    match env.templates.template(&id) {
        Ok(template) => Ok((id, template)),
        Err(error) => {
            let code = error.code().unwrap_or(template::NOT_FOUND);
            let message = words::no_template(&id, &error, env.settings.texts.language);
            Err(Failure::new(code, message, false))
        }
    }
}

/// Returns the id of an action's template, unless a hook replaces it.
pub(super) fn template_id(action: &Action, language: Language) -> Option<String> {
    let own = match &action.kind {
        ActionKind::Say(_) => SAY,
        ActionKind::Ask(_) => ASK,
        ActionKind::Think(_) => THINK,
        ActionKind::Client(_) => return None,
    };
    Some(action.template.clone().unwrap_or_else(|| in_language(own, language)))
}

/// Formats the last messages, one per line (S-032).
fn history(said: &[Said], env: &Env<'_>) -> String {
    if said.is_empty() {
        return env.settings.texts.no_history.to_string();
    }
    let last = &said[said.len().saturating_sub(env.settings.history)..];
    let lines: Vec<String> =
        last.iter().map(|said| format!("{}: {}", said.role, one_line(&said.content))).collect();
    lines.join("\n")
}

/// Joins the lines of a text, so that one speaker's text cannot imitate another's line.
fn one_line(text: &str) -> String {
    const BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines = text.split(BREAKS).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Returns a number in its shortest form.
fn number(level: f64) -> Option<Number> {
    let whole = level.fract() == 0.0;
    if whole { Some(Number::from(level as i64)) } else { Number::from_f64(level) }
}

/// Formats the variables that the model fills, one per line.
fn output_fields(
    output: &[(String, String)],
    script: &Map<String, Value>,
    system: &Map<String, Value>,
) -> String {
    let line = |(name, about): &(String, String)| {
        let about = Template::parse(about.as_str()).render(script, system).text;
        let name = Value::from(name.as_str());
        if about.trim().is_empty() { format!("- {name}") } else { format!("- {name}: {}", about.trim()) }
    };
    output.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Fills variables into a field of an action for the client.
pub(super) fn filled(value: &Value, script: &Map<String, Value>, system: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => Template::parse(text.as_str()).render(script, system).text.into(),
        Value::Array(items) => items.iter().map(|item| filled(item, script, system)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), filled(value, script, system)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}
