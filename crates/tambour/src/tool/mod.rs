//! Tools that a model may call: their names, arguments, and who may call them.
//!
//! ```
//! use tambour::tool::Tools;
//!
//! let tools = Tools::sample();
//! let lint = tools.get("lintSRSDocument").expect("it is one of the four");
//! assert!(lint.check(&serde_json::json!({"userInput": "check it"}), 8).is_empty());
//! assert_eq!(lint.check(&serde_json::json!({"userInput": 1}), 8)[0].pointer, "/userInput");
//! assert_eq!(tools.close("lintSrsDocument")[0], "lintSRSDocument");
//! ```
//!
//! What does not belong here: running a tool.

mod sample;

use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::error::{Error, Result};
pub use crate::schema::Mismatch;
use crate::schema::Schema;
use crate::texts::Language;
pub use crate::texts::close;

/// Steps of checking the arguments of all calls of a reply, as [`Schema::check`] counts them for one value.
pub(crate) const CHECKS: u64 = 16_000_000;

/// The tools a plan may call, in order. Cloning shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tools(Arc<Vec<Tool>>);

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Unique name.
    pub name: String,
    /// One line about it for the model, in Chinese and in English; empty when there is none.
    pub description: [String; 2],
    /// Whether it changes nothing (R-30).
    pub read_only: bool,
    /// Who may call it (P-033); everybody when absent.
    pub callers: Option<Vec<String>>,
    /// Whether a person is asked before it runs.
    pub confirm: bool,
    schema: Schema,
}

impl Tool {
    /// A tool whose arguments satisfy `schema` (JSON Schema, draft 2020-12 unless it says otherwise). Its
    /// `description` is the tool's; `readOnly: true` says that the tool changes nothing, `x-callers` lists who may call it.
    ///
    /// # Errors
    /// An empty name, or a schema that is none or refers to another document.
    pub fn new(name: &str, schema: Value) -> Result<Tool> {
        if name.trim().is_empty() {
            return Err(Error::invalid("a tool has a name"));
        }
        let schema = Schema::new(schema)
            .map_err(|error| Error::invalid(format!("the schema of tool `{name}` is {error}")))?;
        Ok(Tool::of(name, schema))
    }

    /// A tool whose schema was taken by [`Tool::new`] before: it is compiled when it is first needed, since that takes
    /// milliseconds. With a schema that is none no arguments are right.
    #[must_use]
    pub fn trusted(name: &str, schema: Value) -> Tool {
        Tool::of(name, Schema::trusted(schema))
    }

    /// A tool whose arguments satisfy a schema that is compiled already.
    #[must_use]
    pub fn taking(name: &str, args: Schema) -> Tool {
        Tool::of(name, args)
    }

    fn of(name: &str, of_args: Schema) -> Tool {
        let schema = of_args.value();
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        Tool {
            name: name.to_owned(),
            description: [text.to_owned(), text.to_owned()],
            read_only: schema.get("readOnly") == Some(&Value::Bool(true)),
            callers: schema
                .get("x-callers")
                .and_then(Value::as_array)
                .map(|callers| callers.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            confirm: false,
            schema: of_args,
        }
    }

    /// The JSON Schema of its arguments.
    #[must_use]
    pub fn schema(&self) -> &Value {
        self.schema.value()
    }

    /// How many patterns that schema has.
    #[must_use]
    pub fn patterns(&self) -> usize {
        self.schema.patterns()
    }

    /// What it does, in one line.
    #[must_use]
    pub fn description(&self, language: Language) -> &str {
        &self.description[usize::from(language == Language::En)]
    }

    /// What is wrong with these arguments: the first `most` places (P-016).
    #[must_use]
    pub fn check(&self, args: &Value, most: usize) -> Vec<Mismatch> {
        self.schema.check(args, most)
    }

    /// The same for one of several calls, which have [`CHECKS`] steps together. Takes off what this one takes.
    pub(crate) fn check_within(&self, args: &Value, most: usize, left: &mut u64) -> Vec<Mismatch> {
        self.schema.check_within(args, most, left)
    }

    /// Its arguments as a signature: `(userInput: string, projectName?: string)`.
    #[must_use]
    pub fn signature(&self) -> String {
        self.schema.signature()
    }

    /// Arguments for an example, if some that satisfy the schema can be made up.
    #[must_use]
    pub fn sample_args(&self) -> Option<Value> {
        self.schema.sample()
    }

    /// Whether it can be called without arguments (P-031).
    #[must_use]
    pub fn takes_nothing(&self) -> bool {
        self.schema.accepts(&Value::Object(serde_json::Map::new()))
    }

    /// Whether `caller` may call it.
    #[must_use]
    pub fn allows(&self, caller: Option<&str>) -> bool {
        match (&self.callers, caller) {
            (None, _) => true,
            (Some(callers), Some(caller)) => callers.iter().any(|one| one == caller),
            (Some(_), None) => false,
        }
    }
}

impl Tools {
    /// These tools; a later one replaces an earlier one of its name.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Tools {
        let mut kept: Vec<Tool> = Vec::new();
        for tool in tools {
            match kept.iter_mut().find(|one| one.name == tool.name) {
                Some(one) => *one = tool,
                None => kept.push(tool),
            }
        }
        Tools(Arc::new(kept))
    }

    /// The four tools of the specification's example (P-020).
    #[must_use]
    pub fn sample() -> Tools {
        static SAMPLE: LazyLock<Tools> = LazyLock::new(|| Tools::new(sample::tools()));
        SAMPLE.clone()
    }

    /// The registry of a JSON object: name to JSON Schema.
    ///
    /// # Errors
    /// Not such an object, or a schema that is none.
    pub fn from_json(value: &Value) -> Result<Tools> {
        let Value::Object(schemas) = value else {
            return Err(Error::invalid("a tool registry is a JSON object: tool name to JSON Schema"));
        };
        let tools: Result<Vec<Tool>> =
            schemas.iter().map(|(name, schema)| Tool::new(name, schema.clone())).collect();
        Ok(Tools::new(tools?))
    }

    /// The tool called `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.0.iter().find(|tool| tool.name == name)
    }

    /// The tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &Tool> {
        self.0.iter()
    }

    /// Names that look like `name`, the closest first (P-015).
    #[must_use]
    pub fn close(&self, name: &str) -> Vec<&str> {
        close(name, self.0.iter().map(|tool| tool.name.as_str()))
    }
}
