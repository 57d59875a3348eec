//! Requests for new messages: fields, checks, and conversion to the start request of a run.

mod constraint;
mod prompt;

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tambour::encode::OutputProtocol;
use tambour::options::HoldMode;
use tambour::{Options, dialect};
use tambour_prompt::lore::TimedEffects;

use self::prompt::{plain_prompt, prompt_opening, rendered_prompt};
use super::foreign::JSON_DIALECT;
use super::keys::Caller;
use super::tools::{ToolChoice, select_tools};
use crate::base::problem::Problem;
use crate::config::reading_defaults::Contract;
use crate::config::skeins::apply_structure;
use crate::http::app::App;
use crate::record::history::PromptRecord;
use crate::run::message_start::StartRequest;
use crate::run::runner::{ToolOffer, UpstreamChoice};
use crate::store::MessageRow;
use crate::tools::{self, MAX_DEFINITION_BYTES, OfferedTool};
use crate::upstream::{Constrain, Message, ModelRequest};

/// Body of `POST /api/v1/messages`.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// Conversation of the same owner; a new one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation_id: Option<String>,
    /// Complete prompt by role; replaces earlier messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) messages: Option<Vec<Message>>,
    /// Text of the user; earlier messages of the conversation precede it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// System prompt of this message only; later messages do not repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) system_prompt: Option<String>,
    /// Skein, as an object or YAML, in place of `messages`; `messages` or `text` then end its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub(super) skein: Option<Value>,
    /// Variables of the prompt's templates: `user`, `char`, `history`, `state`, `now`, `seed` and any other
    /// name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub(super) context: Map<String, Value>,
    /// Id of an imported card: a prompt by itself, or character and lore for `skein`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) card_id: Option<String>,
    /// Ids of imported lorebooks whose entries the prompt includes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) lorebook_ids: Vec<String>,
    /// State of timed lore from earlier turns, for chats that are not a conversation of the server. For its
    /// own conversations the server keeps this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(super) timed: Option<TimedEffects>,
    /// Maximum number of tokens of the rendered prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_context: Option<usize>,
    /// Views of `ui_component` that the client can draw; all when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) views: Option<Vec<String>>,
    /// Model; the upstream's default when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// Name of a configured upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) upstream: Option<String>,
    /// Dialect of the reply; `auto` detects it.
    #[serde(default = "default_dialect")]
    pub(super) dialect: String,
    /// Contract that the reply is checked against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) contract: Option<Contract>,
    /// `legacy` or `jsonseq_v1`; the setting `llm_app_settings.app_output_protocol` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) output_protocol: Option<String>,
    /// Sends extension events.
    #[serde(default)]
    pub(super) extensions: bool,
    /// Sends findings.
    #[serde(default)]
    pub(super) findings: bool,
    /// Sampling temperature; 0.7 for `ai_say` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    /// Maximum number of tokens of the reply; 1000 for `ai_say` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_tokens: Option<u32>,
    /// Nucleus sampling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) top_p: Option<f64>,
    /// Stop sequences: a text or a list of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(super) stop: Option<Value>,
    /// Random seed, where the model supports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<i64>,
    /// Response format enforced by the upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(super) response_format: Option<Value>,
    /// Further fields of the upstream's request, unchanged.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub(super) upstream_fields: Map<String, Value>,
    /// Sends the contract along, so that the server decodes within it; as the upstream says when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) constrain: Option<Constrain>,
    /// Adds the dialect's format instructions to the system prompt.
    #[serde(default)]
    pub(super) instructions: bool,
    /// Behaviour while another message of the conversation runs.
    #[serde(default)]
    pub(super) if_busy: IfBusy,
    /// Tools that replies may call: names of registered ones, or inline tools that the client runs. Their
    /// results are sent to the model. Without this field no call is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tools: Option<Vec<ToolChoice>>,
    /// Caller on whose behalf tools run; a tool may be limited to callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) caller: Option<String>,
    /// Maximum number of re-asks of an unusable reply; 0 when absent, 1 for `ai_say`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) max_reasks: Option<u32>,
    /// Responds with the event stream.
    #[serde(default)]
    pub(super) stream: bool,
    /// Responds with the record after the reply has ended.
    #[serde(default)]
    pub(super) wait: bool,
    /// Model as named by a client of another protocol, kept so that its stream can be written again
    /// unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub(super) named_model: Option<String>,
    /// Fields of an OpenAI Responses request about the response itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub(super) as_response: Option<ResponseFields>,
    /// Id of the message that this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub(super) in_place_of: Option<String>,
    /// Settings of a request that came by a route of another protocol.
    #[serde(skip)]
    pub(super) foreign_settings: Option<ForeignSettings>,
    /// Fallbacks: the same request to other upstreams, tried in order.
    #[serde(skip)]
    pub(super) fallbacks: Vec<NewMessage>,
}

/// Fields of an OpenAI Responses request about the response itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResponseFields {
    /// True if the client does not wait for the response.
    pub(super) background: bool,
    /// True if the message stays stored; otherwise it is deleted once it has been read.
    pub(super) store: bool,
    /// Id of the response that this one continues.
    pub(super) previous: Option<String>,
}

/// Behaviour while another message of the conversation runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IfBusy {
    /// The message waits for its turn.
    #[default]
    Wait,
    /// The message is refused.
    Refuse,
}

impl NewMessage {
    /// Builds the model request, without prompt and tools.
    fn model_request(&self) -> ModelRequest {
        ModelRequest {
            model: self.model.clone(),
            dialect: self.dialect.clone(),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            top_p: self.top_p,
            stop: self.stop.clone(),
            seed: self.seed,
            response_format: self.response_format.clone(),
            tools: Vec::new(),
            tool_choice: self.foreign_settings.as_ref().and_then(|settings| settings.tool_choice.clone()),
            extra_fields: self.upstream_fields.clone(),
            ..ModelRequest::default()
        }
    }
}

/// Dialects whose model requests do not list the tools: `aiplan` has its own notation for calls, and `auto`
/// may detect `aiplan`. With other dialects, the tools field of the model request lists the tools.
const CALLING_DIALECTS: [&str; 2] = ["aiplan", "auto"];

/// Dialect of dialogue rounds, whose defaults differ (S-050, S-054).
const ROUND_DIALECT: &str = "ai_say";

/// Maximum number of re-asks of one message.
const MAX_REASKS: u32 = 5;

fn default_dialect() -> String {
    "auto".to_owned()
}

/// Settings of a request in another protocol that are not fields of `POST /api/v1/messages`.
#[derive(Clone, Debug, Default)]
pub(super) struct ForeignSettings {
    /// Tools that the client runs itself: the message ends with their calls.
    pub(super) tools: Vec<ToolChoice>,
    /// Tool choice, as the client wrote it.
    pub(super) tool_choice: Option<Value>,
    /// True if the message is cancelled when the client disconnects.
    pub(super) ends_with_client: bool,
    /// True if the message continues indefinitely without a reader.
    pub(super) is_background: bool,
    /// True if the object `tambour` selects the upstream or model, instead of the protocol's `model`.
    pub(super) selects_upstream: bool,
    /// Names of fields that the alias sets and the object `tambour` overrides.
    pub(super) overrides: Vec<String>,
}

/// Returns the options of a request: the defaults, overridden by the contract. A JSON Schema among the
/// options is untrusted, so it is compiled within limits, on the CPU pool.
pub(super) async fn request_options(
    app: &App,
    owner: &str,
    contract: Option<&Contract>,
) -> Result<Options, Problem> {
    let schema = contract.and_then(|contract| contract.options.get("json_value.schema"));
    if let Some(length) =
        schema.map(|schema| schema.to_string().len()).filter(|length| *length > MAX_DEFINITION_BYTES)
    {
        let detail = format!("a schema may have at most {MAX_DEFINITION_BYTES} bytes, not {length}");
        return Err(Problem::invalid("schema_limit", detail).with("field", "json_value.schema"));
    }
    let mut options = app
        .reading_defaults()
        .options_for(contract)
        .map_err(|error| Problem::invalid("invalid_option", error))?;
    if let Some(schema) = options.json_schema() {
        let limits = &app.loaded_config().config.tools;
        options.set_json_schema(app.schemas.get((&app.cpu_pool, owner), schema.value(), limits).await?);
    }
    Ok(options)
}

impl NewMessage {
    /// Returns `true` if the message has tools whose results the server sends to the model.
    pub(super) fn has_tools(&self) -> bool {
        self.tools.is_some()
    }

    /// Returns `true` if the prompt is a Skein, given or made from a card or lorebook.
    fn has_skein(&self) -> bool {
        self.skein.is_some() || self.card_id.is_some() || !self.lorebook_ids.is_empty()
    }

    /// Sets in `options` the structure that the Skein requires of a reply, unless the contract sets one.
    fn apply_structure(&self, options: &mut Options) -> Result<(), Problem> {
        let contract = self.contract.as_ref();
        apply_structure(self.skein.as_ref(), self.views.as_deref(), contract, options)
            .map_err(|error| Problem::invalid("invalid_field", error.to_string()).with("field", "views"))
    }

    /// Restores the request of a stored message, to send it again in the same conversation.
    pub(super) fn from_stored(row: &MessageRow) -> Result<NewMessage, Problem> {
        let parsed = serde_json::from_str::<NewMessage>(&row.request);
        let mut new_message = parsed.map_err(|_| {
            let detail = "the stored request can no longer be read";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", detail)
        })?;
        new_message.conversation_id = Some(row.conversation_id.clone());
        // These fields concern only the response to the first request.
        (new_message.named_model, new_message.as_response, new_message.stream, new_message.wait) =
            (None, None, false, false);
        new_message.in_place_of = None;
        Ok(new_message)
    }

    /// Checks the fields, including those of the fallbacks, and fills in defaults.
    pub(super) fn check(&mut self, app: &App) -> Result<(), Problem> {
        if app.shutdown.is_cancelled() {
            let stopping = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "closing", "the server is stopping");
            return Err(stopping.retry_after(5));
        }
        // Fields that the server sets for requests of other protocols. No client may send them.
        let internal_fields =
            [("named_model", self.named_model.is_some()), ("as_response", self.as_response.is_some())];
        if let Some((name, _)) =
            internal_fields.iter().find(|(_, is_present)| *is_present && self.foreign_settings.is_none())
        {
            let problem = Problem::invalid("unknown_field", format!("unknown field `{name}`"));
            return Err(problem.with("field", *name));
        }
        if self.wait && self.stream {
            let detail = "give `stream` for events or `wait` for the record, not both";
            return Err(Problem::invalid("invalid_field", detail).with("field", "wait"));
        }
        // `regenerate` sets this field after the check.
        if self.in_place_of.is_some() {
            let problem = Problem::invalid("unknown_field", "unknown field `in_place_of`");
            return Err(problem.with("field", "in_place_of"));
        }
        self.output_protocol = Some(output_protocol(app, self)?.name().to_owned());
        dialect::find_dialect(&self.dialect).map_err(|error| {
            Problem::invalid("unknown_dialect", error.to_string()).with("field", "dialect")
        })?;
        if let Some(reasks) = self.max_reasks.filter(|&reasks| reasks > MAX_REASKS) {
            let detail = format!("`max_reasks` is at most {MAX_REASKS}, not {reasks}");
            return Err(Problem::invalid("invalid_field", detail).with("field", "max_reasks"));
        }
        if self.dialect == ROUND_DIALECT {
            self.temperature.get_or_insert(0.7);
            self.max_tokens.get_or_insert(1000);
            self.max_reasks.get_or_insert(1);
        }
        self.fallbacks.iter_mut().try_for_each(|fallback| fallback.check(app))
    }

    /// Converts the request, after `check`, to the start request of its run.
    pub(super) async fn to_start_request(
        &self,
        app: &Arc<App>,
        caller: &Caller,
        request_id: String,
        idempotency_key: Option<String>,
    ) -> Result<StartRequest, Problem> {
        let protocol_selects_model =
            self.foreign_settings.as_ref().is_some_and(|settings| !settings.selects_upstream);
        caller.limits.check_alias(self.named_model.as_deref().filter(|_| protocol_selects_model))?;
        let overrides = self.foreign_settings.iter().flat_map(|settings| &settings.overrides);
        caller.limits.check_fields(overrides, self.upstream_fields.keys())?;
        let offer = tool_offer(app, caller, self).await?;
        let settings_with_tools =
            self.foreign_settings.as_ref().filter(|settings| !settings.tools.is_empty());
        let client_tools = match settings_with_tools {
            Some(_) if offer.is_some() => {
                let detail = "the tools of this model run on the server: leave out `tools`";
                return Err(Problem::invalid("invalid_field", detail).with("field", "tools"));
            }
            Some(settings) => Some(select_tools(app, caller, &settings.tools).await?),
            None => None,
        };
        let mut candidates = Vec::with_capacity(1 + self.fallbacks.len());
        for (index, candidate) in [self].into_iter().chain(&self.fallbacks).enumerate() {
            let context: (&App, &str) = (app, &caller.owner);
            let tools = (offer.as_ref(), client_tools.as_deref());
            candidates.push(candidate.upstream_choice(context, tools, index > 0).await?);
        }
        let (built_prompt, timed_lore) = match self.has_skein() {
            true => rendered_prompt(app, caller, self).await?,
            false => (plain_prompt(self)?, None),
        };
        let prompt = PromptRecord { opening: candidates[0].opening.clone(), ..built_prompt };
        let is_legacy = self.output_protocol.as_deref() == Some(OutputProtocol::Legacy.name());
        // `None`: the configured `grace_ms` applies.
        let grace = self.foreign_settings.as_ref().and_then(|settings| match settings {
            ForeignSettings { is_background: true, .. } => Some(Duration::MAX),
            ForeignSettings { ends_with_client: true, .. } => Some(Duration::ZERO),
            _ => None,
        });
        let contract_sets_hold =
            self.contract.as_ref().is_some_and(|contract| contract.options.contains_key("hold"));
        if self.wait
            && !contract_sets_hold
            && (self.max_reasks.is_some_and(|reasks| reasks > 0) || candidates.len() > 1)
        {
            // The client sees nothing before the end, so a whole reply can be re-asked, or replaced by that
            // of a fallback.
            candidates.iter_mut().for_each(|choice| choice.options.hold = HoldMode::All);
        }
        Ok(StartRequest {
            caller: caller.clone(),
            request_id,
            conversation_id: self.conversation_id.clone(),
            prompt,
            candidates,
            offer,
            is_legacy,
            max_reasks: self.max_reasks.unwrap_or(0),
            is_queued: self.if_busy != IfBusy::Refuse,
            request: json!(self).to_string(),
            idempotency_key,
            has_reader: self.stream || self.wait,
            grace,
            timed_lore,
            replaces: None,
        })
    }
}

impl NewMessage {
    /// Returns the upstream of this request or fallback, with its model request and reply options. At most
    /// one of `offer` (the field `tools`) and `client_tools` (of a client of another protocol) is present.
    async fn upstream_choice(
        &self,
        (app, owner): (&App, &str),
        (offer, client_tools): (Option<&ToolOffer>, Option<&[OfferedTool]>),
        is_fallback: bool,
    ) -> Result<UpstreamChoice, Problem> {
        let mut options = request_options(app, owner, self.contract.as_ref()).await?;
        self.apply_structure(&mut options)?;
        if self.dialect == JSON_DIALECT && self.max_reasks.is_some_and(|reasks| reasks > 0) {
            // Nothing is released before the value is valid: a reply that a client has seen cannot be
            // re-asked.
            options.hold = HoldMode::All;
        }
        options.caller.clone_from(&self.caller);
        let mut request = self.model_request();
        request.max_reply_bytes = Some(options.limits.input);
        request.owner = owner.into();
        if let Some(offer) = offer {
            if !CALLING_DIALECTS.contains(&self.dialect.as_str()) {
                request.tools = tools::tool_functions(&offer.tools, options.texts.language);
            }
            options.tools = Some(tools::tool_registry(&offer.tools));
            options.tool_loop = true;
        }
        if let Some(client_tools) = client_tools {
            request.tools = tools::tool_functions(client_tools, options.texts.language);
            options.tools = Some(tools::tool_registry(client_tools));
        }
        let loaded_config = app.loaded_config();
        let upstream = loaded_config.upstream(self.upstream.as_deref()).ok_or_else(|| {
            let name = self.upstream.as_deref().or_else(|| loaded_config.config.default_upstream());
            let known_names = loaded_config.upstreams.keys().map(String::as_str);
            Problem::unknown("unknown_upstream", ("upstream", name.unwrap_or("any")), known_names)
                .with("field", "upstream")
        })?;
        let offered_tools = offer.map(|offer| offer.tools.as_slice()).or(client_tools);
        request.constraint =
            self.constraint((app, owner), &upstream, &options, offered_tools, is_fallback).await?;
        let opening = prompt_opening(self, &mut options)?;
        Ok(UpstreamChoice { upstream, request, options, opening, contract: json!(self.contract) })
    }
}

/// Returns the tools in the field `tools`, whose results the server sends to the model; `None` without the
/// field.
async fn tool_offer(
    app: &App,
    caller: &Caller,
    new_message: &NewMessage,
) -> Result<Option<ToolOffer>, Problem> {
    let caller_name = new_message.caller.as_deref();
    if caller_name.is_some_and(|name| name.trim().is_empty() || name.len() > 200) {
        let detail = "`caller` must be a name of at most 200 bytes";
        return Err(Problem::invalid("invalid_field", detail).with("field", "caller"));
    }
    let Some(choices) = &new_message.tools else { return Ok(None) };
    let tools = select_tools(app, caller, choices).await?;
    Ok(Some(ToolOffer { tools, caller: new_message.caller.clone() }))
}

/// Returns the output protocol of a new message: the requested one, otherwise that of the settings. A later
/// change of the setting does not affect the message (J-033).
fn output_protocol(app: &App, new_message: &NewMessage) -> Result<OutputProtocol, Problem> {
    let Some(name) = &new_message.output_protocol else { return Ok(app.settings().protocol()) };
    OutputProtocol::from_name(name).ok_or_else(|| {
        let known_names: Vec<&str> = OutputProtocol::ALL.iter().map(|protocol| protocol.name()).collect();
        let detail = format!("there is no output protocol `{name}`; known: {}", known_names.join(", "));
        Problem::invalid("unknown_protocol", detail).with("field", "output_protocol")
    })
}
