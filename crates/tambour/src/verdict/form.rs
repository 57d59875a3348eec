//! Forms of a contract: format instructions, a JSON Schema, and grammars for constrained decoding.

use serde_json::Value;

use super::{Contract, DIALECTS, DialectEntry};
use crate::error::{Error, Result};
use crate::grammar::{GrammarFormat, NoteKind};
use crate::options::Options;

/// Form in which a contract is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ContractForm {
    /// Format instructions for a system prompt, as text.
    #[default]
    Prompt,
    /// JSON Schema (draft 2020-12) of what a model writes.
    JsonSchema,
    /// Grammar in Lark, in the dialect of llguidance.
    Lark,
    /// Grammar in GBNF.
    Gbnf,
    /// Structural tag of xgrammar, which is JSON.
    StructuralTag,
}

impl ContractForm {
    /// All forms.
    pub const ALL: [ContractForm; 5] = [
        ContractForm::Prompt,
        ContractForm::JsonSchema,
        ContractForm::Lark,
        ContractForm::Gbnf,
        ContractForm::StructuralTag,
    ];

    /// Public name, such as `json-schema`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ContractForm::Prompt => "prompt",
            ContractForm::JsonSchema => "json-schema",
            ContractForm::Lark => "lark",
            ContractForm::Gbnf => "gbnf",
            ContractForm::StructuralTag => "structural-tag",
        }
    }

    /// Form called `name`.
    ///
    /// # Errors
    /// No form has that name.
    pub fn from_name(name: &str) -> Result<ContractForm> {
        let form = ContractForm::ALL.into_iter().find(|form| form.name() == name);
        form.ok_or_else(|| Error::unknown("format", name, ContractForm::ALL.map(ContractForm::name)))
    }

    /// Returns whether the form is JSON.
    #[must_use]
    pub fn is_json(self) -> bool {
        matches!(self, ContractForm::JsonSchema | ContractForm::StructuralTag)
    }

    /// Name of the part of a contract in messages.
    fn part_name(self) -> &'static str {
        match self {
            ContractForm::Prompt => "format instructions",
            ContractForm::JsonSchema => "JSON Schema",
            ContractForm::Lark | ContractForm::Gbnf | ContractForm::StructuralTag => "grammar",
        }
    }

    /// Returns whether a dialect has the form.
    #[must_use]
    pub fn exists_for(self, entry: &DialectEntry) -> bool {
        match self {
            ContractForm::Prompt => entry.prompt.is_some(),
            ContractForm::JsonSchema => entry.schema.is_some(),
            ContractForm::Lark | ContractForm::Gbnf | ContractForm::StructuralTag => entry.grammar.is_some(),
        }
    }
}

impl Contract {
    /// Writes the contract under these options in one form, as text that ends with a line break unless it is
    /// instructions.
    ///
    /// # Errors
    /// The contract has no such form, or a schema is one that a grammar cannot follow, or the grammar would be
    /// too large.
    pub fn write(self, form: ContractForm, options: &Options) -> Result<String> {
        let missing = || {
            let dialects: Vec<&str> =
                DIALECTS.iter().filter(|entry| form.exists_for(entry)).map(|entry| entry.name).collect();
            let dialects = if dialects.is_empty() {
                String::new()
            } else {
                format!("; available for {}", dialects.join(", "))
            };
            Error::invalid(format!("`{}` has no {}{dialects}", self.name(), form.part_name()))
        };
        let Contract::Dialect(entry) = self else { return Err(missing()) };
        let format = match form {
            ContractForm::Prompt => {
                return entry.prompt.map(|prompt| prompt(options).text()).ok_or_else(missing);
            }
            ContractForm::JsonSchema => {
                let schema = self.json_schema(options).ok_or_else(missing)?;
                return Ok(format!("{schema:#}\n"));
            }
            ContractForm::Lark => GrammarFormat::Lark,
            ContractForm::Gbnf => GrammarFormat::Gbnf,
            ContractForm::StructuralTag => GrammarFormat::StructuralTag,
        };
        Ok(self.grammar(options)?.ok_or_else(missing)?.write(format))
    }

    /// Returns the JSON Schema of what a model writes under these options, with notes on what it does not state as
    /// `$comment`; `None` if the contract has none.
    #[must_use]
    pub fn json_schema(self, options: &Options) -> Option<Value> {
        let Contract::Dialect(entry) = self else { return None };
        let mut schema = entry.schema?(options);
        self.add_notes(&mut schema, options);
        Some(schema)
    }

    /// Adds to a schema of the contract, as `$comment`, what a schema cannot say; validators ignore it.
    fn add_notes(self, schema: &mut Value, options: &Options) {
        let Value::Object(fields) = schema else { return };
        let own_comment = fields.get("$comment").and_then(Value::as_str).map(str::to_owned);
        let mut lines: Vec<String> = own_comment.into_iter().collect();
        lines.push(format!("Contract `{}`: {SCHEMA_NOTE}", self.name()));
        // A schema that no grammar can follow has only the general note.
        if let Ok(Some(grammar)) = self.grammar(options) {
            let rules = grammar.notes.into_iter().filter(|note| note.kind == NoteKind::UncheckedRule);
            lines.extend(rules.map(|note| format!("not stated, rule {}: {}", note.subject, note.text)));
        }
        fields.insert("$comment".to_owned(), lines.join("\n").into());
    }
}

/// Note on what no schema of a reply says.
const SCHEMA_NOTE: &str = "the checker still reads each reply. Not stated: text and fences around the JSON, the number \
                           and order of the lines of a reply, and equal keys in an object";
