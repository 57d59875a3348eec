//! Classes from the JSON Schemas of Rust types.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

use super::{FieldDefinition, FieldKind, TypeDefinition, record_name};

/// Collects classes in the order in which they are needed.
pub(super) struct TypeReader {
    generator: SchemaGenerator,
    definitions: Vec<TypeDefinition>,
}

impl Default for TypeReader {
    fn default() -> TypeReader {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        TypeReader { generator: settings.into_generator(), definitions: Vec::new() }
    }
}

/// Prefix of references to definitions.
const DEFINITIONS: &str = "#/$defs/";

impl TypeReader {
    /// Adds a class, unless there is one of its name.
    pub(super) fn add(&mut self, definition: TypeDefinition) {
        if !self.definitions.iter().any(|known| known.name == definition.name) {
            self.definitions.push(definition);
        }
    }

    /// Adds the class of a type, and those that it needs.
    pub(super) fn add_record<T: JsonSchema>(&mut self) {
        self.kind::<T>();
    }

    /// Adds the class of a type that is an event.
    pub(super) fn add_event<T: JsonSchema>(&mut self, event: &str) {
        if let FieldKind::Object(name) = self.kind::<T>() {
            self.mark_event(&name, event);
        }
    }

    /// Adds the classes of the variants of a type with `event` and `data`.
    pub(super) fn add_extensions<T: JsonSchema>(&mut self) {
        let schema = self.generator.root_schema_for::<T>().to_value();
        for variant in schema["oneOf"].as_array().into_iter().flatten() {
            let event = variant["properties"]["event"]["const"].as_str().unwrap_or_default();
            let data = variant["properties"]["data"].clone();
            self.generator.definitions_mut().extend(schema["$defs"].as_object().cloned().unwrap_or_default());
            if let FieldKind::Object(name) = self.read_kind(&data) {
                self.mark_event(&name, event);
            }
        }
    }

    /// Kind of the values of a type; its classes are added.
    pub(super) fn kind<T: JsonSchema>(&mut self) -> FieldKind {
        let schema = self.generator.subschema_for::<T>().to_value();
        self.read_kind(&schema)
    }

    /// All classes.
    pub(super) fn into_definitions(self) -> Vec<TypeDefinition> {
        self.definitions
    }

    fn mark_event(&mut self, name: &str, event: &str) {
        if let Some(definition) = self.definitions.iter_mut().find(|definition| definition.name == name) {
            definition.event = Some(event.to_owned());
            // The name of the event is enough if the comment says only which event the type belongs to.
            let about = definition.about.strip_prefix(&format!("Data of `{event}`"));
            if let Some(about) = about {
                let about = about.trim_start_matches(": ").trim_matches(['.', ' ']);
                let is_empty = about.is_empty() || about.starts_with('(');
                let mut chars = about.chars();
                let first = chars.next().map(|first| first.to_uppercase().chain(chars).collect::<String>());
                definition.about = first.filter(|_| !is_empty).map_or_else(String::new, |about| about + ".");
            }
        }
    }

    fn read_kind(&mut self, schema: &Value) -> FieldKind {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix(DEFINITIONS)) {
            let definition = self.generator.definitions().get(name).cloned().unwrap_or_default();
            return match words(&definition) {
                Some(words) => FieldKind::Words(words),
                None => self.read_class(name, &definition),
            };
        }
        if let Some(alternatives) = schema["anyOf"].as_array() {
            // A value or null.
            let kinds: Vec<&Value> = alternatives.iter().filter(|kind| kind["type"] != "null").collect();
            return match kinds[..] {
                [kind] => self.read_kind(kind),
                _ => FieldKind::Json,
            };
        }
        if let Some(words) = words(schema) {
            return FieldKind::Words(words);
        }
        let type_name = match &schema["type"] {
            Value::Array(names) => names.iter().find(|name| *name != "null").and_then(Value::as_str),
            name => name.as_str(),
        };
        match type_name {
            Some("string") => FieldKind::Text,
            Some("integer") => FieldKind::Integer,
            Some("number") => FieldKind::Number,
            Some("boolean") => FieldKind::Flag,
            Some("array") => FieldKind::List(Box::new(self.read_kind(&schema["items"]))),
            Some("object") if schema["properties"]["items"].is_object() => {
                // Items of a status bar nest, so their schema is written out.
                self.read_class("StatusItem", schema)
            }
            Some("object") => {
                let values = schema.get("additionalProperties").filter(|values| values.is_object());
                FieldKind::Map(Box::new(values.map_or(FieldKind::Json, |values| self.read_kind(values))))
            }
            _ => FieldKind::Json,
        }
    }

    fn read_class(&mut self, name: &str, schema: &Value) -> FieldKind {
        let class = record_name(name);
        let kind = FieldKind::Object(class.clone());
        if self.definitions.iter().any(|known| known.name == class) {
            return kind;
        }
        let empty = Map::new();
        // A type that wraps another one has its fields.
        let wrapped = schema["$ref"].as_str().and_then(|path| path.strip_prefix(DEFINITIONS));
        let wrapped = wrapped.and_then(|name| self.generator.definitions().get(name)).cloned();
        let fields_schema = wrapped.as_ref().unwrap_or(schema);
        let properties = fields_schema["properties"].as_object().unwrap_or(&empty);
        let required = |field: &str| {
            fields_schema["required"].as_array().is_some_and(|names| names.iter().any(|name| name == field))
        };
        let mut fields = Vec::new();
        for (field, field_schema) in properties {
            let kind = if name == "StatusItem" && field == "items" {
                FieldKind::List(Box::new(FieldKind::Object(class.clone())))
            } else {
                self.read_kind(field_schema)
            };
            fields.push(FieldDefinition {
                name: field.clone(),
                about: about(field_schema),
                kind,
                may_be_absent: !required(field),
                may_be_null: is_nullable(field_schema),
            });
        }
        let rest = &fields_schema["additionalProperties"];
        let is_open = !properties.is_empty() && !rest.is_null() && *rest != false;
        if is_open {
            fields.push(FieldDefinition {
                name: "fields".to_owned(),
                about: "Further fields, as the author of the script wrote them.".to_owned(),
                kind: FieldKind::Map(Box::new(FieldKind::Json)),
                may_be_absent: false,
                may_be_null: false,
            });
        }
        self.add(TypeDefinition { name: class, event: None, about: about(schema), fields, is_open });
        kind
    }
}

/// Words of an enumeration; `None` for another schema.
fn words(schema: &Value) -> Option<Vec<String>> {
    let to_word = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(to_word).collect();
    }
    let variants = schema["oneOf"].as_array()?;
    variants.iter().map(|variant| to_word(&variant["const"])).collect()
}

fn is_nullable(schema: &Value) -> bool {
    let has_null =
        |names: &Value| names.as_array().is_some_and(|names| names.iter().any(|name| name == "null"));
    let has_null_type = schema["anyOf"]
        .as_array()
        .is_some_and(|alternatives| alternatives.iter().any(|kind| kind["type"] == "null"));
    has_null(&schema["type"]) || has_null_type
}

/// Description of a schema in one line.
fn about(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split("\n\n").next().unwrap_or_default().replace('\n', " ")
}
