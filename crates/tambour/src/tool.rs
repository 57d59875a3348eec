//! Tools that a model may call: names, arguments and permitted callers.
//!
//! ```
//! use tambour::tool::ToolRegistry;
//!
//! let tools = ToolRegistry::sample();
//! let lint = tools.get("lintSRSDocument").expect("it is one of the four");
//! assert!(lint.check(&serde_json::json!({"userInput": "check it"}), 8).is_empty());
//! assert_eq!(lint.check(&serde_json::json!({"userInput": 1}), 8)[0].pointer, "/userInput");
//! assert_eq!(tools.similar_names("lintSrsDocument")[0], "lintSRSDocument");
//! ```
//!
//! Running a tool does not belong here.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::texts::Language;

pub use crate::schema::SchemaMismatch;
#[doc(hidden)]
pub use crate::texts::closest_names;

/// Maximum number of steps to check the arguments of all calls in a reply together; see [`Schema::check`].
pub(crate) const MAX_REPLY_CHECK_STEPS: u64 = 16_000_000;

/// Registered tools, in order. Clones share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolRegistry(Arc<Vec<RegisteredTool>>);

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredTool {
    /// Unique name.
    pub name: String,
    /// One-line descriptions for the model, in Chinese and in English; empty if there are none.
    pub description: [String; 2],
    /// True if the tool changes nothing (R-30).
    pub read_only: bool,
    /// Permitted callers (P-033); `None` permits all.
    pub callers: Option<Vec<String>>,
    /// True if a person must confirm each call.
    pub requires_confirmation: bool,
    /// Schema of the arguments.
    schema: Schema,
}

impl RegisteredTool {
    /// Creates a tool whose arguments must satisfy `schema` (JSON Schema, draft 2020-12 unless it says
    /// otherwise). The `description` of the schema becomes the tool's; `readOnly: true` marks a tool that
    /// changes nothing, and `x-callers` lists the permitted callers.
    ///
    /// # Errors
    /// The name is empty, or the schema is invalid or refers to another document.
    pub fn new(name: &str, schema: Value) -> Result<RegisteredTool> {
        if name.trim().is_empty() {
            return Err(Error::invalid("a tool must have a name"));
        }
        let schema = Schema::new(schema)
            .map_err(|error| Error::invalid(format!("the schema of tool `{name}`: {error}")))?;
        Ok(RegisteredTool::from_schema(name, schema))
    }

    /// Creates a tool with a schema that [`RegisteredTool::new`] accepted before. The schema is compiled on
    /// first use, which takes milliseconds. If it is invalid, no arguments satisfy it.
    #[doc(hidden)]
    #[must_use]
    pub fn from_trusted(name: &str, schema: Value) -> RegisteredTool {
        RegisteredTool::from_schema(name, Schema::from_trusted(schema))
    }

    /// Creates a tool whose arguments must satisfy a compiled schema.
    #[doc(hidden)]
    #[must_use]
    pub fn with_schema(name: &str, args_schema: Schema) -> RegisteredTool {
        RegisteredTool::from_schema(name, args_schema)
    }

    fn from_schema(name: &str, args_schema: Schema) -> RegisteredTool {
        let schema = args_schema.value();
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        RegisteredTool {
            name: name.to_owned(),
            description: [text.to_owned(), text.to_owned()],
            read_only: schema.get("readOnly") == Some(&Value::Bool(true)),
            callers: schema
                .get("x-callers")
                .and_then(Value::as_array)
                .map(|callers| callers.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
            requires_confirmation: false,
            schema: args_schema,
        }
    }

    /// Returns the JSON Schema of the arguments.
    #[must_use]
    pub fn schema(&self) -> &Value {
        self.schema.value()
    }

    /// Counts the regular expressions of the schema.
    #[doc(hidden)]
    #[must_use]
    pub fn count_patterns(&self) -> usize {
        self.schema.count_patterns()
    }

    /// Returns the one-line description.
    #[must_use]
    pub fn description(&self, language: Language) -> &str {
        &self.description[usize::from(language == Language::En)]
    }

    /// Returns the first `max_mismatches` violations of the schema by `args` (P-016).
    #[must_use]
    pub fn check(&self, args: &Value, max_mismatches: usize) -> Vec<SchemaMismatch> {
        self.schema.check(args, max_mismatches)
    }

    /// Like [`RegisteredTool::check`], for one of several calls that share [`MAX_REPLY_CHECK_STEPS`] steps.
    /// Deducts the steps from `steps_left`.
    pub(crate) fn check_within(
        &self,
        args: &Value,
        max_mismatches: usize,
        steps_left: &mut u64,
    ) -> Vec<SchemaMismatch> {
        self.schema.check_within(args, max_mismatches, steps_left)
    }

    /// Returns the arguments as a signature: `(userInput: string, projectName?: string)`.
    #[doc(hidden)]
    #[must_use]
    pub fn signature(&self) -> String {
        self.schema.signature()
    }

    /// Returns example arguments, if some that satisfy the schema can be generated.
    #[must_use]
    pub(crate) fn sample_args(&self) -> Option<Value> {
        self.schema.sample()
    }

    /// Returns true if the tool can be called without arguments (P-031).
    #[must_use]
    pub(crate) fn accepts_no_arguments(&self) -> bool {
        self.schema.accepts(&Value::Object(serde_json::Map::new()))
    }

    /// Returns true if `caller` may call the tool.
    #[must_use]
    pub fn allows_caller(&self, caller: Option<&str>) -> bool {
        match (&self.callers, caller) {
            (None, _) => true,
            (Some(callers), Some(caller)) => callers.iter().any(|name| name == caller),
            // An unknown caller is permitted only where all are.
            (Some(_), None) => false,
        }
    }
}

impl ToolRegistry {
    /// Creates a registry; a later tool replaces an earlier one with the same name.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = RegisteredTool>) -> ToolRegistry {
        let mut registered: Vec<RegisteredTool> = Vec::new();
        for tool in tools {
            match registered.iter_mut().find(|existing| existing.name == tool.name) {
                Some(existing) => *existing = tool,
                None => registered.push(tool),
            }
        }
        ToolRegistry(Arc::new(registered))
    }

    /// Returns the four tools of the specification's example (P-020).
    #[must_use]
    pub fn sample() -> ToolRegistry {
        static SAMPLE: LazyLock<ToolRegistry> = LazyLock::new(|| ToolRegistry::new(sample_tools()));
        SAMPLE.clone()
    }

    /// Reads a registry from a JSON object that maps names to JSON Schemas.
    ///
    /// # Errors
    /// The value is not such an object, or a schema is invalid.
    pub fn from_json(value: &Value) -> Result<ToolRegistry> {
        let Value::Object(schemas) = value else {
            return Err(Error::invalid(
                "a tool registry must be a JSON object that maps tool names to JSON Schemas",
            ));
        };
        let tools: Result<Vec<RegisteredTool>> =
            schemas.iter().map(|(name, schema)| RegisteredTool::new(name, schema.clone())).collect();
        Ok(ToolRegistry::new(tools?))
    }

    /// Returns the tool with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.0.iter().find(|tool| tool.name == name)
    }

    /// Iterates over the tools in order.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.0.iter()
    }

    /// Returns similar names, the closest first (P-015).
    #[must_use]
    pub fn similar_names(&self, name: &str) -> Vec<&str> {
        closest_names(name, self.0.iter().map(|tool| tool.name.as_str()))
    }
}

/// Tools of the specification's example, an assistant that writes requirements (P-020): name, description in
/// Chinese and in English, and true if the tool is read-only.
const SAMPLE_TOOLS: [(&str, &str, &str, bool); 4] = [
    ("createComprehensiveSRS", "创建完整的SRS文档", "create a complete SRS document", false),
    ("editSRSDocument", "编辑现有SRS文档", "edit an existing SRS document", false),
    ("classifyProjectComplexity", "分析项目复杂度", "analyse the complexity of a project", true),
    ("lintSRSDocument", "执行SRS质量检查", "run an SRS quality check", true),
];

fn sample_tools() -> Vec<RegisteredTool> {
    let make_tool = |(name, chinese, english, read_only): (&str, &str, &str, bool)| {
        let mut tool = RegisteredTool::from_trusted(name, sample_schema());
        tool.description = [chinese.to_owned(), english.to_owned()];
        tool.read_only = read_only;
        tool
    };
    SAMPLE_TOOLS.into_iter().map(make_tool).collect()
}

/// Returns the schema of the arguments, the same for all four tools (P-021). `userInput` is required, others
/// are allowed (R-31).
fn sample_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "userInput": {"type": "string"},
            "projectName": {"type": "string"},
            "sessionData": {
                "type": "object",
                "properties": {
                    "domain": {"type": "string"},
                    "features": {"type": "array", "items": {"type": "string"}},
                    "timestamp": {"type": "string"}
                }
            }
        },
        "required": ["userInput"]
    })
}
