//! Calls of the model: the prompt, rendered anew in every round (S-042), with its settings and its template.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::fit;
use super::machine::DialogueEnv;
use super::messages;
use super::reader::ReplyReader;
use super::state::{AwaitedInput, Dialogue, HistoryMessage, RunningAction};
use crate::script::{AnswerForm, AnswerKind, ScriptAction, ScriptActionKind};
use crate::template::{self, FillWarning, LayeredTemplate, localized_id, script_values, system_values};
use tambour::dialect;
use tambour::event::Failure;
use tambour::exit::ExitCriteria;
use tambour::options::Options;
use tambour::texts::{Language, bilingual};

// Ids of the default templates of `ai_say`, `ai_ask` and `ai_think`, before localization.
const SAY_TEMPLATE: &str = "ai-say-mainline-a-introduce-concept";
const ASK_TEMPLATE: &str = "ai-ask-default";
const THINK_TEMPLATE: &str = "ai-think-default";

/// Message to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallMessage {
    /// Role of the message. A dialogue writes only `user`; `system` and `assistant` are reserved.
    pub role: String,
    /// Text of the message.
    pub content: String,
}

/// Request to a model.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelCall {
    /// Kind of the reply.
    pub kind: ReplyKind,
    /// Messages that make up the prompt.
    pub messages: Vec<CallMessage>,
    /// Sampling temperature (S-050).
    pub temperature: f64,
    /// Token limit of the reply (S-050).
    pub max_tokens: u32,
    /// Id of the template that the prompt was rendered from.
    pub template_id: String,
    /// SHA-256 of the template's text (S-044).
    pub template_hash: String,
    /// Warnings from rendering the template (S-038).
    pub warnings: Vec<FillWarning>,
    /// Round that the reply answers, from 1.
    pub round: u32,
    /// Number of the last round; the action ends after it in any case. `None` for `ai_think`.
    pub max_rounds: Option<u32>,
    /// Number of earlier attempts in this round.
    pub attempt: u32,
    /// Path of the action in the script.
    pub path: String,
}

/// Kind of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyKind {
    /// Answer of a round of `ai_say`, in the dialect `ai_say`.
    Say {
        /// Criteria for ending the action before its last round.
        criteria: ExitCriteria,
    },
    /// Answer of a round of `ai_ask`.
    Ask {
        /// Required form of the answer.
        form: AnswerForm,
        /// The question with its variables filled in.
        question: String,
    },
    /// Object of `ai_think` with the values of these variables.
    Think {
        /// Names of the variables.
        variables: Vec<String>,
    },
}

impl ReplyKind {
    /// Returns the name of the reply's form: `ai_say`, `ai_ask` or `ai_think`. Recordings are
    /// selected by this name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ReplyKind::Say { .. } => "ai_say",
            ReplyKind::Ask { .. } => "ai_ask",
            ReplyKind::Think { .. } => "ai_think",
        }
    }
}

impl ModelCall {
    /// Creates a reader of the reply; `options` are the reading options.
    #[must_use]
    pub fn reader(&self, options: &Options) -> ReplyReader {
        ReplyReader::new(self, options)
    }

    /// Returns a JSON Schema for constrained decoding of an answer of `ai_ask`; `None` for a question that
    /// asks for text, and for other kinds of replies. `options` are the reading options.
    #[must_use]
    pub fn schema(&self, options: &Options) -> Option<Value> {
        match &self.kind {
            ReplyKind::Ask { form, .. } if form.kind != AnswerKind::Text => {
                Some(fit::reply_schema(form, &dialect::role(options)))
            }
            _ => None,
        }
    }
}

/// Builds the call that an action needs now.
///
/// # Errors
/// The action lacks a required field, its template does not exist or cannot be loaded (S-022), or the client
/// carries it out.
pub(super) fn build_call(
    dialogue: &Dialogue,
    action: &ScriptAction,
    running_action: &RunningAction,
    env: &DialogueEnv<'_>,
) -> Result<ModelCall, Failure> {
    let (attempt, reason) = match &running_action.awaited_input {
        AwaitedInput::Model { attempt, because: reason } => (*attempt, reason.as_deref()),
        _ => (0, None),
    };
    let variables = dialogue.scopes.visible();
    let incomplete_error = |name: &str| {
        let message = bilingual!(
            env.settings.texts.language,
            "`{}` 没有 `{}`，无法执行",
            "`{}` has no `{}`, so it cannot be carried out",
            action.path,
            name
        );
        let is_retryable = false;
        Failure::new("action_incomplete", message, is_retryable)
    };
    let (mut kind, content, max_rounds, default_template_id) = match &action.kind {
        ScriptActionKind::Say(say) => {
            let kind = ReplyKind::Say { criteria: say.exit_criteria.clone() };
            (kind, say.content.as_str(), Some(say.max_rounds), SAY_TEMPLATE)
        }
        ScriptActionKind::Ask(ask) => {
            let question = ask.question.as_deref().ok_or_else(|| incomplete_error("question"))?;
            // The question is set below, once its variables are filled in.
            let kind = ReplyKind::Ask { form: ask.answer.clone(), question: String::new() };
            (kind, question, Some(ask.max_rounds), ASK_TEMPLATE)
        }
        ScriptActionKind::Think(think) => {
            let prompt = think.prompt.as_deref().ok_or_else(|| incomplete_error("prompt"))?;
            let variables = think.output.iter().map(|(name, _)| name.clone()).collect();
            (ReplyKind::Think { variables }, prompt, None, THINK_TEMPLATE)
        }
        ScriptActionKind::Client(_) => return Err(incomplete_error("a prompt")),
    };
    let (template_id, template) =
        find_template(action, default_template_id, &variables, running_action, env)?;
    let chat_history = format_history(&dialogue.history, env);
    let threshold = match &kind {
        ReplyKind::Say { criteria } => to_number(criteria.understanding_threshold()),
        _ => None,
    };
    let round = template::RoundFacts {
        now: env.now,
        chat_history: &chat_history,
        understanding_threshold: threshold,
        current_round: running_action.round,
        max_rounds,
    };
    let system_variables = system_values(&variables, &round);
    let (mut script_variables, mut warnings) = script_values(&variables, content, &system_variables);
    if let ScriptActionKind::Think(think) = &action.kind {
        script_variables.insert(
            "output_fields".to_owned(),
            format_output_fields(&think.output, &script_variables, &system_variables).into(),
        );
    }
    let mut filled_template = template.render(&script_variables, &system_variables);
    warnings.extend(filled_template.warnings);
    for warning in &mut warnings {
        warning.message = warning.localized_message(env.settings.texts.language);
    }
    let language = env.settings.texts.language;
    if let ReplyKind::Ask { form, question } = &mut kind {
        question.push_str(script_variables.get("topic_content").and_then(Value::as_str).unwrap_or_default());
        // Added to the filled template, so that nothing in this text is expanded.
        filled_template.text.push_str(&fit::describe_form(form, language).unwrap_or_default());
    }
    if attempt > 0 {
        filled_template.text.push_str(messages::reask_note(reason, language));
    }
    Ok(ModelCall {
        kind,
        messages: vec![CallMessage { role: "user".to_owned(), content: filled_template.text }],
        temperature: env.settings.temperature,
        max_tokens: env.settings.max_tokens,
        template_id,
        template_hash: template.hash(),
        warnings,
        round: running_action.round + 1,
        max_rounds,
        attempt,
        path: action.path.clone(),
    })
}

/// Finds the template of an action: the hook's, the author's, or the default of its type in the configured
/// language.
fn find_template(
    action: &ScriptAction,
    default_id: &str,
    variables: &Map<String, Value>,
    running_action: &RunningAction,
    env: &DialogueEnv<'_>,
) -> Result<(String, LayeredTemplate), Failure> {
    let configured_id = match &action.template {
        Some(id) => id.clone(),
        None => localized_id(default_id, env.settings.texts.language),
    };
    let context = super::HookContext { action, round: running_action.round + 1, variables };
    let id = env.hooks.choose_template(&context, &configured_id).unwrap_or(configured_id);
    match env.templates.template(&id) {
        Ok(template) => Ok((id, template)),
        Err(error) => {
            let code = error.code().unwrap_or(template::TEMPLATE_NOT_FOUND);
            let message = messages::template_missing(&id, &error, env.settings.texts.language);
            let is_retryable = false;
            Err(Failure::new(code, message, is_retryable))
        }
    }
}

/// Returns the id of an action's template, which a hook may replace; `None` for an action of the client.
pub(super) fn template_id(action: &ScriptAction, language: Language) -> Option<String> {
    let default_id = match &action.kind {
        ScriptActionKind::Say(_) => SAY_TEMPLATE,
        ScriptActionKind::Ask(_) => ASK_TEMPLATE,
        ScriptActionKind::Think(_) => THINK_TEMPLATE,
        ScriptActionKind::Client(_) => return None,
    };
    Some(action.template.clone().unwrap_or_else(|| localized_id(default_id, language)))
}

/// Formats the last messages, one per line (S-032).
fn format_history(messages: &[HistoryMessage], env: &DialogueEnv<'_>) -> String {
    if messages.is_empty() {
        return env.settings.texts.no_history.to_string();
    }
    let last_messages = &messages[messages.len().saturating_sub(env.settings.history)..];
    let lines: Vec<String> = last_messages
        .iter()
        .map(|message| format!("{}: {}", message.role, join_lines(&message.content)))
        .collect();
    lines.join("\n")
}

/// Joins the lines of a text, so that one speaker's text cannot imitate another's line.
fn join_lines(text: &str) -> String {
    const BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines = text.split(BREAKS).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Converts a threshold to a JSON number, without a fraction if it is whole.
fn to_number(threshold: f64) -> Option<Number> {
    let is_whole = threshold.fract() == 0.0;
    if is_whole { Some(Number::from(threshold as i64)) } else { Number::from_f64(threshold) }
}

/// Formats the variables that the model fills, one per line; `output` holds their names and descriptions.
fn format_output_fields(
    output: &[(String, String)],
    script_variables: &Map<String, Value>,
    system_variables: &Map<String, Value>,
) -> String {
    let format_line = |(name, description): &(String, String)| {
        let description =
            LayeredTemplate::parse(description.as_str()).render(script_variables, system_variables).text;
        let name = Value::from(name.as_str());
        if description.trim().is_empty() {
            format!("- {name}")
        } else {
            format!("- {name}: {}", description.trim())
        }
    };
    output.iter().map(format_line).collect::<Vec<_>>().join("\n")
}

/// Fills variables into the texts of a field that the client gets, at any depth.
pub(super) fn fill_variables(
    value: &Value,
    script_variables: &Map<String, Value>,
    system_variables: &Map<String, Value>,
) -> Value {
    match value {
        Value::String(text) => {
            LayeredTemplate::parse(text.as_str()).render(script_variables, system_variables).text.into()
        }
        Value::Array(items) => {
            items.iter().map(|item| fill_variables(item, script_variables, system_variables)).collect()
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                (name.clone(), fill_variables(value, script_variables, system_variables))
            });
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}
