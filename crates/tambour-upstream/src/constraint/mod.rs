//! Constraints: the contract of a reply, sent along so that the service decodes within it.
//!
//! [`table`] says which server takes which form in which field. Servers ignore fields that they do not know
//! and answer with prose, so [`probe`] tries a form on a canary before it is used, and [`apply`] falls back to a
//! weaker form where the server refuses one.

mod apply;
mod probe;
mod subset;
mod table;
mod tools;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tambour::Options;
use tambour::dialect::DialectEntry;
use tambour::verdict::{Contract, ContractForm};

pub(crate) use apply::unconstrained_failure;
pub(crate) use probe::ServiceIdentity;
pub use probe::{ConstraintProbes, FieldState, ProbedField, ProbedServer};
pub(crate) use table::ConstraintServer;
pub use table::constraint_servers;

/// Dialects whose whole reply may be a value of their JSON Schema.
const SCHEMA_DIALECTS: [&str; 3] = ["ai_say", "aiplan", "json_value"];

/// Maximum size in bytes of a form that is sent; larger ones are left out.
const MAX_FORM_BYTES: usize = 2 << 20;

/// Sending of the contract of a reply to the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Constrain {
    /// It is sent if the server obeys one of its forms.
    Auto,
    /// It must be sent; a server that obeys none of its forms is an error before the model is asked.
    Required,
    /// It is not sent.
    #[default]
    Off,
}

impl Constrain {
    /// Public name, such as `auto`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Constrain::Auto => "auto",
            Constrain::Required => "required",
            Constrain::Off => "off",
        }
    }
}

/// Form in which a service takes a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConstraintForm {
    /// GBNF of llama.cpp.
    Gbnf,
    /// Lark in the dialect of llguidance.
    Lark,
    /// Structural tag of xgrammar.
    StructuralTag,
    /// JSON Schema of the whole reply.
    JsonSchema,
}

impl ConstraintForm {
    /// Public name, such as `json-schema`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ConstraintForm::Gbnf => "gbnf",
            ConstraintForm::Lark => "lark",
            ConstraintForm::StructuralTag => "structural-tag",
            ConstraintForm::JsonSchema => "json-schema",
        }
    }
}

/// One contract in the forms that it has.
#[derive(Debug, Default)]
pub struct ConstraintForms {
    /// Forms with their contents: a text for grammars, JSON for the others.
    contents: Vec<(ConstraintForm, Value)>,
    /// Hash of the contents, under which a server's refusal is remembered.
    hash: u64,
    /// Size in bytes.
    size: usize,
}

impl ConstraintForms {
    /// Collects the forms of one contract.
    #[must_use]
    pub fn new(contents: Vec<(ConstraintForm, Value)>) -> ConstraintForms {
        let mut hasher = DefaultHasher::new();
        let mut size = 0;
        for (form, content) in &contents {
            let text = content.to_string();
            (form, &text).hash(&mut hasher);
            size += text.len();
        }
        ConstraintForms { contents, hash: hasher.finish(), size }
    }

    /// Writes the forms of a dialect's contract under these options; `None` if it has no form.
    ///
    /// # Errors
    /// A schema is one that no form can follow, or a form would be too large.
    pub fn of_contract(
        entry: &'static DialectEntry,
        options: &Options,
    ) -> tambour::Result<Option<ConstraintForms>> {
        if !ContractForm::Gbnf.exists_for(entry) {
            return Ok(None);
        }
        let mut forms = vec![
            (ConstraintForm::Gbnf, ContractForm::Gbnf),
            (ConstraintForm::Lark, ContractForm::Lark),
            (ConstraintForm::StructuralTag, ContractForm::StructuralTag),
        ];
        if SCHEMA_DIALECTS.contains(&entry.name) {
            forms.push((ConstraintForm::JsonSchema, ContractForm::JsonSchema));
        }
        let mut contents = Vec::new();
        for (form, written) in forms {
            let text = Contract::Dialect(entry).write(written, options)?;
            if text.len() > MAX_FORM_BYTES {
                continue;
            }
            let content = match form {
                ConstraintForm::Gbnf | ConstraintForm::Lark => Value::String(text),
                // Left out if it nests deeper than JSON is read.
                _ => match serde_json::from_str(&text) {
                    Ok(content) => content,
                    Err(_) => continue,
                },
            };
            contents.push((form, content));
        }
        Ok(Some(ConstraintForms::new(contents)))
    }

    /// Content of a form; `None` if the contract does not have it.
    #[must_use]
    pub fn content(&self, form: ConstraintForm) -> Option<&Value> {
        self.contents.iter().find(|(own_form, _)| *own_form == form).map(|(_, content)| content)
    }

    /// Returns `true` if there is no form.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// Size of all forms in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }
}

/// Constraint of one request.
#[derive(Clone, Debug)]
pub struct Constraint {
    /// True if the reply must be constrained ([`Constrain::Required`]).
    pub is_required: bool,
    /// The contract.
    pub forms: Arc<ConstraintForms>,
    /// True if the contract takes the place of the request's `response_format`, which is sent where the contract
    /// cannot be.
    pub replaces_format: bool,
}

/// Outcome of the constraint of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConstraintReport {
    /// Form that was sent; `None` if the reply is not constrained.
    pub form: Option<ConstraintForm>,
    /// Forms of this contract that the server refused now, strongest first; not those that it is known to refuse.
    pub refused: Vec<ConstraintForm>,
}

/// Code of the failure of a request that must be constrained and cannot be.
pub const UNCONSTRAINED_CODE: &str = "upstream_unconstrained";
