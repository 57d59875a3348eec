//! Format instructions for JSON replies.

use serde_json::json;

use super::options;
use crate::dialect::FormatInstructions;
use crate::options::Options;
use crate::texts::Language;

/// Returns the format instructions: one value, its schema, an example.
pub(super) fn prompt(options: &Options) -> FormatInstructions {
    let schema = options.json_schema();
    let example = match &schema {
        None => Some(json!({ "answer": 42 })),
        Some(schema) => schema.sample(),
    };
    let (opening, format, before, rules) = match options.texts.language {
        Language::En => (
            "Answer with one JSON value and nothing else.",
            "It satisfies this JSON Schema:",
            "For example:",
            "Nothing stands before or behind it, no Markdown fence around it, no comment in it. Keys and texts stand in double \
             quotes, line breaks in texts are written as \\n. Write it to its end and leave nothing out.\n",
        ),
        Language::Zh => (
            "只输出一个 JSON 值，不要输出其他内容。",
            "它必须符合以下 JSON Schema：",
            "例如：",
            "前后不要有任何文字，不要使用 Markdown 代码块，不要写注释。键和文本使用双引号，文本中的换行写作 \\n。请完整写出，不要省略。\n",
        ),
    };
    let mut opening = format!("{opening}\n\n");
    if schema.is_some() {
        opening.push_str(&format!("{format}\n\n{}\n\n", options::schema(options)));
    }
    let example = example.map(|example| example.to_string()).unwrap_or_default();
    if !example.is_empty() {
        opening.push_str(&format!("{before}\n\n"));
    }
    let rules = if example.is_empty() { rules.to_owned() } else { format!("\n\n{rules}") };
    FormatInstructions { opening: opening.into(), example: example.into(), rules: rules.into() }
}
