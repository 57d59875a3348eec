//! Table of the servers that take constraints: which forms, in which fields of their requests.
//!
//! Sources, read in November 2026: `tools/server/README.md` of llama.cpp (`grammar`, `json_schema`) and its
//! `docs/llguidance.md` (`%llguidance {}`); "Structured Outputs" in the documentations of vLLM (0.12 and newer)
//! and of SGLang; "Structured outputs" of Ollama; "Structured model outputs" of OpenAI; "Structured outputs" of
//! Anthropic; `GenerationConfig` of the Gemini API.

use serde_json::{Map, Value};

use super::subset::{
    ANTHROPIC_SCHEMAS, GEMINI_SCHEMAS, GGML_SCHEMAS, OPENAI_SCHEMAS, SchemaSubset, XGRAMMAR_SCHEMAS,
};
use super::{ConstraintForm, ConstraintForms};
use crate::kind::ServiceKind;

/// Server that takes constraints.
#[derive(Debug)]
pub(crate) struct ConstraintServer {
    /// Name in the configuration.
    pub(crate) name: &'static str,
    /// Interface of the server.
    pub(crate) kind: ServiceKind,
    /// Host of the service, if there is only one; its upstreams need no probe to know the server.
    pub(super) host: Option<&'static str>,
    /// Fields, in the order in which they are tried: the strongest form first.
    pub(super) fields: &'static [ConstraintField],
    /// Fields by which a request of a client sets a form itself, dots between levels. A request with one of
    /// them gets no constraint.
    pub(super) own_fields: &'static [&'static str],
    /// Schemas of strict tools, if the service has them.
    pub(super) strict_tools: Option<&'static SchemaSubset>,
    /// Field for the maximum number of tokens of a probe, and that number. It is larger where reasoning counts.
    pub(super) probe_tokens: (&'static str, u32),
}

/// Field of a request that takes a constraint.
#[derive(Debug)]
pub(super) struct ConstraintField {
    /// Form that it takes.
    pub(super) form: ConstraintForm,
    /// Members that the body of the request gets, as JSON; the text `$` stands for the content.
    pub(super) members: &'static str,
    /// True if JSON is sent as a text.
    pub(super) is_text: bool,
    /// Schemas that the field takes, if the form is a schema.
    pub(super) schemas: Option<&'static SchemaSubset>,
}

/// Fields of the servers with OpenAI's interface by which a client sets a form.
const OPENAI_OWN_FIELDS: &[&str] = &[
    "ebnf",
    "functions",
    "grammar",
    "grammar_lazy",
    "grammar_triggers",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "json_schema",
    "regex",
    "response_format",
    "structural_tag",
    "structured_outputs",
    "tool_choice",
    "tools",
];

const GRAMMAR: ConstraintField =
    ConstraintField { form: ConstraintForm::Gbnf, members: "", is_text: false, schemas: None };

const SCHEMA: ConstraintField = ConstraintField {
    form: ConstraintForm::JsonSchema,
    members: "",

    is_text: false,
    schemas: Some(&XGRAMMAR_SCHEMAS),
};

/// `response_format` of OpenAI.
const RESPONSE_FORMAT: &str =
    r#"{"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":"$"}}}"#;

/// The table. Servers with OpenAI's interface stand in the order in which an unknown server is probed.
pub(crate) const SERVERS: &[ConstraintServer] = &[
    // `grammar` together with `json_schema` is an error there, so each field stands alone.
    ConstraintServer {
        name: "llama.cpp",
        kind: ServiceKind::OpenAi,
        host: None,
        fields: &[
            ConstraintField { members: r#"{"grammar":"$"}"#, ..GRAMMAR },
            ConstraintField { form: ConstraintForm::Lark, members: r#"{"grammar":"$"}"#, ..GRAMMAR },
            ConstraintField { members: r#"{"json_schema":"$"}"#, schemas: Some(&GGML_SCHEMAS), ..SCHEMA },
        ],
        own_fields: OPENAI_OWN_FIELDS,
        strict_tools: None,
        probe_tokens: ("max_tokens", 64),
    },
    // The back end `xgrammar` reads EBNF, `guidance` Lark.
    ConstraintServer {
        name: "vllm",
        kind: ServiceKind::OpenAi,
        host: None,
        fields: &[
            ConstraintField { members: r#"{"structured_outputs":{"grammar":"$"}}"#, ..GRAMMAR },
            ConstraintField {
                form: ConstraintForm::Lark,
                members: r#"{"structured_outputs":{"grammar":"$"}}"#,
                ..GRAMMAR
            },
            ConstraintField {
                form: ConstraintForm::StructuralTag,
                members: r#"{"structured_outputs":{"structural_tag":"$"}}"#,
                is_text: true,
                ..GRAMMAR
            },
            ConstraintField { members: r#"{"structured_outputs":{"json":"$"}}"#, ..SCHEMA },
        ],
        own_fields: OPENAI_OWN_FIELDS,
        strict_tools: None,
        probe_tokens: ("max_tokens", 64),
    },
    ConstraintServer {
        name: "sglang",
        kind: ServiceKind::OpenAi,
        host: None,
        fields: &[
            ConstraintField { members: r#"{"ebnf":"$"}"#, ..GRAMMAR },
            ConstraintField {
                form: ConstraintForm::StructuralTag,
                members: r#"{"response_format":"$"}"#,
                ..GRAMMAR
            },
            ConstraintField { members: RESPONSE_FORMAT, ..SCHEMA },
        ],
        own_fields: OPENAI_OWN_FIELDS,
        strict_tools: None,
        probe_tokens: ("max_tokens", 64),
    },
    ConstraintServer {
        name: "openai",
        kind: ServiceKind::OpenAi,
        host: Some("api.openai.com"),
        fields: &[ConstraintField { members: RESPONSE_FORMAT, schemas: Some(&OPENAI_SCHEMAS), ..SCHEMA }],
        own_fields: OPENAI_OWN_FIELDS,
        strict_tools: Some(&OPENAI_SCHEMAS),
        // Reasoning models refuse `max_tokens`.
        probe_tokens: ("max_completion_tokens", 512),
    },
    ConstraintServer {
        name: "ollama",
        kind: ServiceKind::Ollama,
        host: None,
        fields: &[ConstraintField { members: r#"{"format":"$"}"#, schemas: Some(&GGML_SCHEMAS), ..SCHEMA }],
        own_fields: &["response_format", "format", "tools"],
        strict_tools: None,
        probe_tokens: ("max_tokens", 64),
    },
    ConstraintServer {
        name: "anthropic",
        kind: ServiceKind::Anthropic,
        host: None,
        fields: &[ConstraintField {
            members: r#"{"output_config":{"format":{"type":"json_schema","schema":"$"}}}"#,
            schemas: Some(&ANTHROPIC_SCHEMAS),
            ..SCHEMA
        }],
        own_fields: &["response_format", "output_config.format", "output_format", "tool_choice", "tools"],
        strict_tools: Some(&ANTHROPIC_SCHEMAS),
        probe_tokens: ("max_tokens", 64),
    },
    ConstraintServer {
        name: "gemini",
        kind: ServiceKind::Gemini,
        host: None,
        fields: &[ConstraintField {
            members: r#"{"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":"$"}}"#,
            schemas: Some(&GEMINI_SCHEMAS),
            ..SCHEMA
        }],
        own_fields: &[
            "response_format",
            "generationConfig.responseMimeType",
            "generationConfig.responseSchema",
            "generationConfig.responseJsonSchema",
            "generationConfig.response_mime_type",
            "generationConfig.response_schema",
            "generationConfig.response_json_schema",
            "generation_config",
            "cachedContent",
            "cached_content",
            "toolConfig",
            "tool_config",
            "tools",
        ],
        strict_tools: None,
        probe_tokens: ("max_tokens", 512),
    },
];

/// Names of the servers in the table, each with the name of its kind.
pub fn constraint_servers() -> impl Iterator<Item = (&'static str, &'static str)> {
    SERVERS.iter().map(|server| (server.name, server.kind.name()))
}

impl ConstraintServer {
    /// Server of this name and kind.
    pub(crate) fn from_name(name: &str, kind: ServiceKind) -> Option<&'static ConstraintServer> {
        SERVERS.iter().find(|server| server.name == name && server.kind == kind)
    }

    /// Servers that an upstream of this kind at `base` can be, in the order in which they are probed.
    pub(crate) fn candidates(kind: ServiceKind, base: &str) -> Vec<&'static ConstraintServer> {
        let host = url::Url::parse(base).ok().and_then(|base| Some(base.host_str()?.to_owned()));
        let of_kind = || SERVERS.iter().filter(|server| server.kind == kind);
        let known = of_kind().find(|server| server.host.is_some() && server.host == host.as_deref());
        known.map_or_else(|| of_kind().collect(), |server| vec![server])
    }

    /// First field by which the extra fields of a request set a form, or something that a service refuses beside a
    /// form. A null counts, too: it would stand in the place of the form.
    pub(super) fn own_field(&self, extra_fields: &Map<String, Value>) -> Option<&'static str> {
        let is_set = |path: &str| {
            let mut names = path.split('.');
            let first = names.next().and_then(|name| extra_fields.get(name));
            names.fold(first, |value, name| value?.get(name)).is_some()
        };
        self.own_fields.iter().copied().find(|path| is_set(path))
    }
}

impl ConstraintField {
    /// Members that constrain a request to a contract; `None` if the contract does not have the form, or the
    /// server cannot take its schema.
    pub(super) fn members(&self, forms: &ConstraintForms) -> Option<Map<String, Value>> {
        let content = forms.content(self.form)?;
        let content = match (self.schemas, content) {
            (Some(schemas), schema) => schemas.fit(schema)?,
            (None, content) => content.clone(),
        };
        let content = if self.is_text { Value::String(content.to_string()) } else { content };
        let mut members: Value = serde_json::from_str(self.members).ok()?;
        replace_mark(&mut members, &content);
        match members {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Names of the members.
    pub(super) fn names(&self) -> Vec<String> {
        let members: Map<String, Value> = serde_json::from_str(self.members).unwrap_or_default();
        members.keys().cloned().collect()
    }
}

/// Puts the content in the place of the mark.
fn replace_mark(members: &mut Value, content: &Value) {
    match members {
        Value::String(text) if text == "$" => *members = content.clone(),
        Value::Object(fields) => fields.values_mut().for_each(|value| replace_mark(value, content)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn each_row_has_a_name_fields_and_a_place_for_the_content() {
        let names: HashSet<&str> = SERVERS.iter().map(|server| server.name).collect();
        assert_eq!(names.len(), SERVERS.len());
        let forms = ConstraintForms::new(vec![
            (ConstraintForm::Gbnf, "root ::= \"x\"".into()),
            (ConstraintForm::Lark, "start: \"x\"".into()),
            (
                ConstraintForm::StructuralTag,
                json!({"type": "structural_tag", "format": {"type": "any_text"}}),
            ),
            (
                ConstraintForm::JsonSchema,
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
            ),
        ]);
        for server in SERVERS {
            assert!(!server.fields.is_empty(), "{}", server.name);
            for field in server.fields {
                assert_eq!(field.members.matches("\"$\"").count(), 1, "{}", server.name);
                assert_eq!(
                    field.schemas.is_some(),
                    field.form == ConstraintForm::JsonSchema,
                    "{}",
                    server.name
                );
                let members = field.members(&forms).expect("the contract has all forms");
                // A request that sets the same field itself is recognised.
                assert!(server.own_field(&members).is_some(), "{}: {members:?}", server.name);
            }
        }
    }

    #[test]
    fn fields_of_a_client_are_found_at_their_place() {
        let server = ConstraintServer::from_name("anthropic", ServiceKind::Anthropic).expect("a row");
        let fields = |json: Value| json.as_object().cloned().expect("an object");
        assert_eq!(server.own_field(&fields(json!({"output_config": {"effort": "low"}}))), None);
        let format = fields(json!({"output_config": {"format": {"type": "json_schema"}}}));
        assert_eq!(server.own_field(&format), Some("output_config.format"));
        // A null would stand in the place of the form.
        assert_eq!(server.own_field(&fields(json!({"response_format": null}))), Some("response_format"));
        assert_eq!(server.own_field(&fields(json!({"top_k": null}))), None);
        // Services refuse tools beside a form; Gemini takes names in snake case, too.
        for server in SERVERS {
            assert_eq!(server.own_field(&fields(json!({"tools": [{"google_search": {}}]}))), Some("tools"));
        }
        let server = ConstraintServer::from_name("gemini", ServiceKind::Gemini).expect("a row");
        for own in [
            json!({"generation_config": {"response_schema": {}}}),
            json!({"generationConfig": {"response_schema": {}}}),
            json!({"cachedContent": "x"}),
        ] {
            assert!(server.own_field(&fields(own.clone())).is_some(), "{own}");
        }
    }

    #[test]
    fn the_host_of_a_service_names_its_server() {
        let names = |base: &str| -> Vec<&str> {
            ConstraintServer::candidates(ServiceKind::OpenAi, base).iter().map(|server| server.name).collect()
        };
        assert_eq!(names("https://api.openai.com/v1"), ["openai"]);
        assert_eq!(names("http://127.0.0.1:8080/v1"), ["llama.cpp", "vllm", "sglang", "openai"]);
    }
}
