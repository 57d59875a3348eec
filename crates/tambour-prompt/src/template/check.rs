//! Lists the variables of a set of templates, scripts and Skeins (prompts of blocks): those that are used,
//! used without a definition, or declared and never used (S-043).

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Layer, LayeredTemplate, SHIPPED_TEMPLATES, SYSTEM_NAMES};
use crate::jinja::{self, Engine, UndefinedMode, is_context_name};
use tambour::error::{Error, Location, Result};
use tambour::yaml;

/// File whose variables are listed.
#[derive(Clone, Debug)]
pub struct VariableSource {
    name: String,
    text: String,
    kind: SourceKind,
}

/// Kind of a file, with its parsed content.
#[derive(Clone, Debug)]
enum SourceKind {
    /// A template of two layers.
    Template(LayeredTemplate),
    /// A script, whose `declare` lists define variables and whose actions use them.
    Script(Value),
    /// A Skein, whose texts are Jinja templates and whose `metadata` defines variables.
    Skein(Value),
}

/// A variable in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub struct VariableUse {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in Unicode scalar values, from 1.
    pub column: usize,
    /// Variable as written: `{name}`, `{%name%}` or `{{ name }}`; only the name for a declaration.
    pub variable: String,
}

/// Variables of a set of files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct VariableReport {
    /// Used variables, each with its first use in a file.
    pub used: Vec<VariableUse>,
    /// Used variables without a definition: script variables that no script declares or sets, unknown system
    /// variables, and variables of a Skein that neither the context nor its `metadata` has and no earlier
    /// block sets.
    pub undefined: Vec<VariableUse>,
    /// Variables that a script declares but nothing uses.
    pub unused: Vec<VariableUse>,
}

impl VariableSource {
    /// Reads a file: YAML with `sessions` or `session` is a script, YAML with `blocks` a Skein, and a file
    /// that is not YAML by its name a template.
    ///
    /// # Errors
    /// The YAML is invalid, or is neither a script nor a Skein.
    pub fn read(name: &str, text: &str) -> Result<VariableSource> {
        let (name, text) = (name.to_owned(), text.to_owned());
        let lower = name.to_ascii_lowercase();
        if !lower.ends_with(".yaml") && !lower.ends_with(".yml") {
            let kind = SourceKind::Template(LayeredTemplate::parse(text.clone()));
            return Ok(VariableSource { name, text, kind });
        }
        let value = yaml::parse(&name, &text)?;
        let kind = match &value {
            // A flat script has a single session (S-013).
            value if value.get("sessions").is_some() || value.get("session").is_some() => {
                SourceKind::Script(value.clone())
            }
            value if value.get("blocks").is_some() => SourceKind::Skein(value.clone()),
            _ => {
                return Err(Error::invalid(format!(
                    "{name}: has neither `sessions` (a script) nor `blocks` (a Skein)"
                )));
            }
        };
        Ok(VariableSource { name, text, kind })
    }

    /// Returns the use of a variable at an offset of the text.
    fn use_at(&self, offset: usize, variable: String) -> VariableUse {
        let location = Location::from_offset(&self.text, offset);
        VariableUse { file: self.name.clone(), line: location.line, column: location.column, variable }
    }

    /// Returns the offset of the first occurrence of a text, 0 if there is none.
    fn find(&self, text: &str) -> usize {
        self.text.find(text).unwrap_or(0)
    }
}

/// Lists the variables of all files together; a declaration in one file counts for all.
///
/// # Errors
/// A text of a Skein is not a valid template.
pub fn check_variables(sources: &[VariableSource]) -> Result<VariableReport> {
    // Variables that the dialogue itself sets in each round.
    let mut defined_names: HashSet<String> = ["topic_content", "output_fields"].map(str::to_owned).into();
    let mut declarations: BTreeMap<String, VariableUse> = BTreeMap::new();
    for source in sources {
        if let SourceKind::Script(value) = &source.kind {
            visit_fields(value, &mut |key, value| {
                let Value::Object(fields) = value else { return };
                defined_names.extend(assigned_names(fields).into_iter().map(str::to_owned));
                if let ("declare", Some(Value::String(name))) = (key, fields.get("var")) {
                    defined_names.insert(name.clone());
                    let usage = || source.use_at(source.find(name), name.clone());
                    declarations.entry(name.clone()).or_insert_with(usage);
                }
            });
        }
    }
    let mut report = VariableReport::default();
    // Variables that something reads: first those that the system itself reads.
    let mut needed_names: HashSet<String> = ["咨询师名", "用户名"].map(str::to_owned).into();
    // Actions that name no template use the shipped ones.
    for shipped in SHIPPED_TEMPLATES {
        needed_names.extend(shipped.parse().variables(Layer::Script).into_iter().map(str::to_owned));
    }
    for source in sources {
        let mut seen = HashSet::new();
        let mut add_use = |layer: Layer, name: &str, offset: Option<usize>| {
            if !seen.insert((layer, name.to_owned())) {
                return;
            }
            let (marker, is_defined) = match layer {
                Layer::Script => (format!("{{{name}}}"), defined_names.contains(name)),
                Layer::System => (format!("{{%{name}%}}"), SYSTEM_NAMES.contains(&name)),
            };
            if layer == Layer::Script {
                needed_names.insert(name.to_owned());
            }
            let usage = source.use_at(offset.unwrap_or_else(|| source.find(&marker)), marker);
            if !is_defined {
                report.undefined.push(usage.clone());
            }
            report.used.push(usage);
        };
        match &source.kind {
            SourceKind::Template(template) => {
                template.variable_uses().for_each(|(layer, name, at)| add_use(layer, name, Some(at)));
            }
            SourceKind::Script(value) => visit_fields(value, &mut |key, value| {
                if let ("condition", Value::String(text)) = (key, value) {
                    // The script check reports invalid expressions.
                    for name in jinja::list_variables(text).unwrap_or_default() {
                        add_use(Layer::Script, &name, Some(source.find(text)));
                    }
                } else if let Value::String(text) = value
                    && !matches!(key, "var" | "value")
                {
                    let template = LayeredTemplate::parse(text.as_str());
                    template.variable_uses().for_each(|(layer, name, _)| add_use(layer, name, None));
                }
            }),
            SourceKind::Skein(value) => check_skein(source, value, &mut report)?,
        }
    }
    report.unused = declarations
        .into_iter()
        .filter(|(name, _)| !needed_names.contains(name))
        .map(|(_, usage)| usage)
        .collect();
    report.unused.sort();
    Ok(report)
}

/// Returns the variables that an action with these fields sets (S-011, S-013).
fn assigned_names(fields: &Map<String, Value>) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for key in ["variable", "target_variable", "output_variable", "extract_to"] {
        names.extend(fields.get(key).and_then(Value::as_str));
    }
    for output in ["output", "output_variables"].iter().filter_map(|key| fields.get(*key)) {
        match output {
            Value::Object(descriptions) => names.extend(descriptions.keys().map(String::as_str)),
            Value::Array(items) => names.extend(items.iter().filter_map(|item| match item {
                Value::Object(item) => ["get", "var", "name"].iter().find_map(|key| item.get(*key)?.as_str()),
                item => item.as_str(),
            })),
            _ => {}
        }
    }
    names
}

/// Adds the variables in the `text` of a Skein's blocks to the report.
fn check_skein(source: &VariableSource, value: &Value, report: &mut VariableReport) -> Result<()> {
    let engine = Engine::new(UndefinedMode::Lenient);
    let metadata = value.get("metadata").and_then(Value::as_object);
    let blocks = value.get("blocks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut assigned_names: HashSet<String> = HashSet::new();
    let mut seen_names = HashSet::new();
    for text in blocks.iter().filter_map(|block| block.get("text")?.as_str()) {
        for name in engine.list_undeclared(&source.name, text)? {
            let root = name.split('.').next().unwrap_or_default().to_owned();
            if !seen_names.insert(name.clone()) {
                continue;
            }
            let is_known = is_context_name(&root)
                || assigned_names.contains(&root)
                || metadata.is_some_and(|fields| fields.contains_key(&root));
            let usage = source.use_at(source.find(&name), format!("{{{{ {name} }}}}"));
            if !is_known {
                report.undefined.push(usage.clone());
            }
            report.used.push(usage);
        }
        // Later blocks can read variables that a block sets.
        assigned_names.extend(engine.list_assigned(&source.name, text)?);
    }
    Ok(())
}

/// Visits each key of a tree with its value; items of a list have the key of the list.
fn visit_fields(value: &Value, visit: &mut impl FnMut(&str, &Value)) {
    // A stack in place of recursion: the tree may be deep.
    let mut pending: Vec<(&str, &Value)> = vec![("", value)];
    while let Some((key, value)) = pending.pop() {
        visit(key, value);
        match value {
            Value::Array(items) => pending.extend(items.iter().rev().map(|item| (key, item))),
            Value::Object(fields) => {
                pending.extend(fields.iter().rev().map(|(key, field)| (key.as_str(), field)))
            }
            _ => {}
        }
    }
}
