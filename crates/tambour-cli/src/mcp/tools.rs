//! Tools of the MCP server: arguments and results. Each tool runs the command of the same name.

use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use rmcp::handler::server::tool::schema_for_type;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tambour::dialect::{self, DIALECTS};
use tambour::limits::Limits;
use tambour::texts::explain_parse_error;
use tambour::verdict::Contract;
use tambour::{Finding, Options, Pipeline, Profile};

use crate::check::{self, Strictness};
use crate::contract::{self, Format, Lang};
use crate::decode::{EventLines, Finish};
use crate::repair::{RepairedReply, ReplyRepair};
use crate::{CommandOutcome, args, json, output};

/// Maximum length of an argument `text` in bytes: the default limit of a reply.
pub(super) const MAX_TEXT_BYTES: usize = Limits::DEFAULT_INPUT;

/// Entry of the tool table.
pub(super) struct McpToolEntry {
    pub(super) name: &'static str,
    title: &'static str,
    description: &'static str,
    /// JSON Schema of the arguments.
    schema: fn() -> Arc<JsonObject>,
    /// Runs the tool. An error becomes the result of the client's call.
    pub(super) run: fn(Value) -> Result<ToolOutput>,
}

/// Result of a tool.
pub(super) struct ToolOutput {
    /// Text that the command would print on standard output; a message if there is no result.
    pub(super) text: String,
    /// Messages that the command would print on standard error.
    pub(super) notes: Option<String>,
    /// Result for programs, as JSON.
    pub(super) structured_content: Value,
}

/// All tools.
pub(super) const TOOLS: &[McpToolEntry] = &[
    McpToolEntry {
        name: "check",
        title: "Check a reply",
        description: "Check a reply of a language model, a transcript of an event stream or the examples of a Markdown document against a \
                contract. Gives a verdict and all findings, each with its place, rule and code.",
        schema: schema_for_type::<CheckArgs>,
        run: |arguments| check_text(&parse_arguments(arguments)?),
    },
    McpToolEntry {
        name: "decode",
        title: "Decode a reply",
        description: "Turn a raw reply of a language model into typed events, the last of which is `completed` or `error`.",
        schema: schema_for_type::<DecodeArgs>,
        run: |arguments| decode(&parse_arguments(arguments)?),
    },
    McpToolEntry {
        name: "repair",
        title: "Repair a reply",
        description: "Rewrite a reply of a language model so that it passes the strict check. Gives the reply and what was wrong with it.",
        schema: schema_for_type::<RepairArgs>,
        run: |arguments| repair(&parse_arguments(arguments)?),
    },
    McpToolEntry {
        name: "json",
        title: "Find JSON in a text",
        description: "Give the one JSON value in a chatty, fenced or broken text, and what was mended. Numbers keep all their digits.",
        schema: schema_for_type::<JsonArgs>,
        run: |arguments| find_json(&parse_arguments(arguments)?),
    },
    McpToolEntry {
        name: "contract",
        title: "Show a contract",
        description: "Give the format instructions of a dialect for a system prompt, or the JSON Schema of what a model writes.",
        schema: schema_for_type::<ContractArgs>,
        run: |arguments| show_contract(&parse_arguments(arguments)?),
    },
];

impl McpToolEntry {
    /// Describes the tool to clients.
    pub(super) fn to_tool(&self) -> Tool {
        let read_only = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true);
        Tool::new(self.name, self.description, (self.schema)())
            .with_title(self.title)
            .with_annotations(read_only.open_world(false))
    }
}

/// Check a text against a contract.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckArgs {
    /// Text.
    #[schemars(length(max = MAX_TEXT_BYTES))]
    text: String,
    /// Dialect of the reply, or `events` for the transcript of a stream; detected when absent.
    #[schemars(with = "String", extend("enum" = contract_names()))]
    #[serde(default)]
    contract: Option<String>,
    /// Severity of findings.
    #[serde(default)]
    profile: Strictness,
    /// Check the fenced examples in the text, which is Markdown.
    #[serde(default)]
    examples: bool,
    /// Reading options by name, such as `{"thinkingml.serp_block": "optional"}`.
    #[serde(default)]
    #[schemars(extend("properties" = option_schemas()))]
    options: Map<String, Value>,
}

/// Turn a reply into events.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DecodeArgs {
    /// Reply.
    #[schemars(length(max = MAX_TEXT_BYTES))]
    text: String,
    /// Dialect of the reply.
    #[serde(default = "default_dialect")]
    #[schemars(extend("enum" = dialect_names()))]
    from: String,
    /// Finish reason of the reply.
    #[serde(default)]
    finish: Finish,
    /// Include extension events.
    #[serde(default)]
    extensions: bool,
    /// Include findings as `finding` events.
    #[serde(default)]
    findings: bool,
    /// Reading options by name, such as `{"plain.thinking": "skip"}`.
    #[serde(default)]
    #[schemars(extend("properties" = option_schemas()))]
    options: Map<String, Value>,
}

/// Rewrite a reply.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RepairArgs {
    /// Reply.
    #[schemars(length(max = MAX_TEXT_BYTES))]
    text: String,
    /// Dialect of the reply.
    #[serde(default = "default_dialect")]
    #[schemars(extend("enum" = dialect_names()))]
    from: String,
    /// Finish reason of the reply.
    #[serde(default)]
    finish: Finish,
    /// Reading options by name.
    #[serde(default)]
    #[schemars(extend("properties" = option_schemas()))]
    options: Map<String, Value>,
}

/// Find a JSON value.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JsonArgs {
    /// Text.
    #[schemars(length(max = MAX_TEXT_BYTES))]
    text: String,
    /// Accept only a text that is valid JSON (RFC 8259).
    #[serde(default)]
    strict: bool,
}

/// Show a contract.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ContractArgs {
    /// Dialect.
    #[schemars(extend("enum" = instructable_dialect_names()))]
    dialect: String,
    /// Form of the contract.
    #[serde(default)]
    format: Format,
    /// Language of the instructions; default: the option `text_language`, else `zh`.
    #[schemars(with = "Lang")]
    #[serde(default)]
    lang: Option<Lang>,
    /// Reading options by name, such as `{"ai_say.role": "coach"}`.
    #[serde(default)]
    #[schemars(extend("properties" = option_schemas()))]
    options: Map<String, Value>,
}

fn default_dialect() -> String {
    dialect::AUTO.to_owned()
}

fn contract_names() -> Vec<&'static str> {
    Contract::names().collect()
}

fn dialect_names() -> Vec<&'static str> {
    DIALECTS.iter().map(|entry| entry.name).collect()
}

fn instructable_dialect_names() -> Vec<&'static str> {
    let dialects = DIALECTS
        .iter()
        .filter(|entry| entry.prompt.is_some() || entry.schema.is_some() || entry.grammar.is_some());
    dialects.map(|entry| entry.name).collect()
}

/// Describes the reading options by name. A value may be text, as for `--option`, or the JSON value it stands
/// for.
fn option_schemas() -> Map<String, Value> {
    let settings = tambour::settings::all_settings().filter(|(_, setting)| setting.name != "profile");
    let schemas = settings.map(|(_, setting)| {
        (
            setting.name.to_owned(),
            json!({"description": format!("{}: {}", setting.values_label(), setting.description)}),
        )
    });
    schemas.collect()
}

fn parse_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T> {
    serde_json::from_value(arguments)
        .map_err(|error| anyhow!("the arguments are not valid: {}", explain_parse_error(&error.to_string())))
}

fn build_options(profile: Profile, arguments: &Map<String, Value>) -> Result<Options> {
    let mut options = Options::default();
    options.profile = profile;
    for (name, value) in arguments {
        args::set_option(&mut options, name, value.clone())?;
    }
    Ok(options)
}

fn check_size(text: &str) -> Result<()> {
    if text.len() > MAX_TEXT_BYTES {
        bail!("`text` has {} bytes, and at most {MAX_TEXT_BYTES} are read", text.len());
    }
    Ok(())
}

fn check_text(arguments: &CheckArgs) -> Result<ToolOutput> {
    check_size(&arguments.text)?;
    let options = build_options(arguments.profile.into(), &arguments.options)?;
    let mut verdicts =
        check::check_text(&arguments.text, arguments.contract.as_deref(), options, arguments.examples)?;
    let lines: Vec<String> = verdicts.iter().map(Value::to_string).collect();
    if arguments.examples {
        let is_passed = verdicts.iter().all(|verdict| verdict["verdict"] == "pass");
        let verdict = if is_passed { "pass" } else { "fail" };
        let structured_content = json!({"verdict": verdict, "examples": verdicts});
        return Ok(ToolOutput { text: lines.join("\n"), notes: None, structured_content });
    }
    // Without `examples` there is one text, and so one verdict.
    let structured_content = verdicts.pop().unwrap_or_default();
    let notes = arguments.contract.is_none().then(|| {
        let kind = structured_content["contract"].as_str().unwrap_or_default();
        format!("checked as `{kind}`, which was detected; name the contract with `contract`")
    });
    Ok(ToolOutput { text: lines.join("\n"), notes, structured_content })
}

fn decode(arguments: &DecodeArgs) -> Result<ToolOutput> {
    check_size(&arguments.text)?;
    let options = build_options(Profile::Lenient, &arguments.options)?;
    let pipeline = Pipeline::new(&arguments.from, &options)?;
    let mut pipeline = pipeline.with_extensions(arguments.extensions).with_findings(arguments.findings);
    let mut lines = EventLines::default();
    pipeline.push(arguments.text.as_bytes(), &mut lines);
    pipeline.finish(&arguments.finish.to_input_end(), &mut lines);
    let text = String::from_utf8(lines.buffer).context("events are not UTF-8")?;
    let events: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let structured_content =
        json!({"dialect": pipeline.dialect(), "refused": lines.lacks_answer, "events": events});
    Ok(ToolOutput { text, notes: None, structured_content })
}

fn repair(arguments: &RepairArgs) -> Result<ToolOutput> {
    check_size(&arguments.text)?;
    let options = build_options(Profile::Lenient, &arguments.options)?;
    let mut repair = ReplyRepair::new(&arguments.from, &options)?;
    repair.push(arguments.text.as_bytes());
    let RepairedReply { reply, findings, failure, outcome } =
        repair.finish(&arguments.finish.to_input_end())?;
    if let Some(message) = failure {
        bail!("{message}");
    }
    let lacks_answer = outcome != CommandOutcome::Success;
    let structured_content = json!({"reply": reply, "refused": lacks_answer, "findings": findings});
    Ok(ToolOutput { text: reply, notes: format_findings(&findings), structured_content })
}

fn find_json(arguments: &JsonArgs) -> Result<ToolOutput> {
    check_size(&arguments.text)?;
    let json::FoundJson { value, findings } = json::find_json(&arguments.text, arguments.strict);
    let notes = format_findings(&findings);
    let Some(value) = value else {
        let structured_content = json!({"found": false, "findings": findings});
        return Ok(ToolOutput { text: "there is no JSON value".to_owned(), notes, structured_content });
    };
    // The value is JSON text in a string, which keeps all digits of its numbers.
    let structured_content = json!({"found": true, "json": value, "findings": findings});
    Ok(ToolOutput { text: value, notes, structured_content })
}

fn show_contract(arguments: &ContractArgs) -> Result<ToolOutput> {
    let entry = dialect::find_dialect(&arguments.dialect)?;
    let mut options = build_options(Profile::default(), &arguments.options)?;
    if let Some(lang) = arguments.lang {
        if arguments.options.contains_key("text_language") {
            bail!("give `lang` or the option `text_language`, not both");
        }
        options.set("text_language", lang.name())?;
    }
    let text = contract::contract_text(entry, &options, arguments.format)?;
    let structured_content = match arguments.format {
        Format::Prompt => json!({"dialect": entry.name, "prompt": text}),
        Format::JsonSchema => {
            json!({"dialect": entry.name, "schema": serde_json::from_str::<Value>(&text)?})
        }
        Format::Lark | Format::Gbnf => json!({"dialect": entry.name, "grammar": text}),
        Format::StructuralTag => {
            json!({"dialect": entry.name, "structural_tag": serde_json::from_str::<Value>(&text)?})
        }
    };
    Ok(ToolOutput { text, notes: None, structured_content })
}

/// Formats findings in lines, as commands print them; `None` if there are none.
fn format_findings(findings: &[Finding]) -> Option<String> {
    let lines: Vec<String> = findings.iter().map(|finding| output::finding_line("text", finding)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
