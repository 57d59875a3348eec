//! Tools of the specification's example, an assistant that writes requirements (P-020, P-021).

use serde_json::{Value, json};

use super::RegisteredTool;

/// Name, description in Chinese and in English, and true if the tool is read-only.
const SAMPLE_TOOLS: [(&str, &str, &str, bool); 4] = [
    ("createComprehensiveSRS", "创建完整的SRS文档", "create a complete SRS document", false),
    ("editSRSDocument", "编辑现有SRS文档", "edit an existing SRS document", false),
    ("classifyProjectComplexity", "分析项目复杂度", "analyse the complexity of a project", true),
    ("lintSRSDocument", "执行SRS质量检查", "run an SRS quality check", true),
];

pub(super) fn sample_tools() -> Vec<RegisteredTool> {
    let make_tool = |(name, chinese, english, read_only): (&str, &str, &str, bool)| {
        let mut tool = RegisteredTool::from_trusted(name, schema());
        tool.description = [chinese.to_owned(), english.to_owned()];
        tool.read_only = read_only;
        tool
    };
    SAMPLE_TOOLS.into_iter().map(make_tool).collect()
}

/// Returns the schema of the arguments of all four tools (R-31: `userInput` is required, others are allowed).
fn schema() -> Value {
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
