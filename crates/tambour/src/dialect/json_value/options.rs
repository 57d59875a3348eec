//! Options of the `json_value` dialect.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::Error;
use crate::options::{Options, Setting, SettingValues};
use crate::schema::Schema;

/// Requirements on the value of a reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JsonValueOptions {
    /// Schema of the value; any object if absent.
    pub(super) schema: Option<Arc<Schema>>,
}

pub(super) const SETTINGS: &[Setting] = &[Setting {
    name: "json_value.schema",
    description: "the JSON Schema of the value; if absent, any object is valid",
    default: "",
    accepts: SettingValues::Json(|options, value| {
        let schema = Schema::from_checked(value.clone())
            .map_err(|error| Error::invalid(format!("json_value.schema: {error}")))?;
        options.set_json_schema(Arc::new(schema));
        Ok(())
    }),
}];

impl Options {
    /// Sets `json_value.schema` to a compiled schema.
    #[doc(hidden)]
    pub fn set_json_schema(&mut self, schema: Arc<Schema>) {
        self.update_section(|section: &mut JsonValueOptions| section.schema = Some(schema));
    }

    /// Returns the schema set as `json_value.schema`.
    #[doc(hidden)]
    #[must_use]
    pub fn json_schema(&self) -> Option<Arc<Schema>> {
        self.section::<JsonValueOptions>().schema
    }
}

/// Returns the schema of the reply.
pub(super) fn schema(options: &Options) -> Value {
    options.json_schema().map_or_else(|| json!({ "type": "object" }), |schema| schema.value().clone())
}
