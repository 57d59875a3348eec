//! Format instructions for a system prompt (P-023, P-036), built from the modes and the available tools. A
//! worked example comes first: small models follow it better than rules.

use std::fmt::Write;

use serde_json::{Value, json};

use super::modes::{AnswerRequirement, CallRequirement, PlanMode, plan_modes};
use super::options;
use crate::dialect::{ExampleTurn, FormatInstructions};
use crate::options::{Language, Options};

/// Returns the format instructions.
pub(super) fn prompt(options: &Options) -> FormatInstructions {
    let texts = match options.texts.language {
        Language::Zh => &ZH,
        Language::En => &EN,
    };
    FormatInstructions {
        opening: texts.opening.into(),
        example: texts.example.into(),
        rules: write_rules(texts, options).into(),
        turn: Some(texts.turn),
    }
}

/// Texts of one language.
struct PromptTexts {
    /// Index of the language in [`PlanMode::usage`].
    language: usize,
    /// Task and example request.
    opening: &'static str,
    /// Example reply.
    example: &'static str,
    /// Texts for showing the example as a turn.
    turn: ExampleTurn,
    /// Heading of a second example, which calls a tool, and its thought; `{tool}` is replaced by the tool's
    /// name.
    second_heading: &'static str,
    second_thought: &'static str,
    /// Heading of the list of modes.
    modes: &'static str,
    /// Heading of the list of tools, and the text if there are none.
    tools: &'static str,
    no_tools: &'static str,
    /// First rules of the format, with their heading.
    rules: &'static str,
    /// Rule that is used if each mode either calls tools or answers.
    plain_modes: &'static str,
    /// Parts of a rule for each mode, used otherwise.
    forms: ModeRuleTexts,
    /// Last rules of the format.
    ending: &'static str,
}

/// Parts of a mode's rule.
struct ModeRuleTexts {
    /// Punctuation after the mode's name, between the requirements, and at the end.
    colon: &'static str,
    comma: &'static str,
    end: &'static str,
    /// Requirements on `direct_response`: `null`; a text; a text, or `null` if there are calls; a text, or
    /// `null` because there is an additional field.
    null: &'static str,
    text: &'static str,
    text_or_calls: &'static str,
    text_or_field: &'static str,
    /// Requirements on `tool_calls`: at least one call; none; only calls of the read-only tools, whose names
    /// replace `{tools}`.
    some_calls: &'static str,
    no_calls: &'static str,
    read_only: &'static str,
    /// Requirement on the additional field; `{field}` is replaced by its name.
    field: &'static str,
}

/// Writes everything after the first example: a second one if there is a tool for it, modes, tools and rules.
fn write_rules(texts: &PromptTexts, options: &Options) -> String {
    let mut text = String::new();
    if let Some(example) = call_example(texts, options) {
        text.push_str(texts.second_heading);
        write_fenced(&mut text, &example);
    }
    text.push_str(texts.modes);
    for PlanMode { name, usage, .. } in plan_modes(options::plan_variant(options)) {
        let _ = writeln!(text, "- {name}: {}", usage[texts.language]);
    }
    let tools = options::plan_tools(options);
    let mut tools = options::callable_tools(&tools, options).peekable();
    text.push_str(if tools.peek().is_some() { texts.tools } else { texts.no_tools });
    for tool in tools {
        let description = tool.description(options.texts.language);
        let separator = if description.is_empty() { "" } else { ": " };
        let _ = writeln!(text, "- {}{}{separator}{description}", tool.name, tool.signature());
    }
    text.push_str(texts.rules);
    text.push_str(&write_mode_rules(texts, options));
    text.push_str(texts.ending);
    text
}

/// Describes the requirements of each mode on the other fields: with one rule if each mode either calls tools
/// or answers, else with one line per mode.
fn write_mode_rules(texts: &PromptTexts, options: &Options) -> String {
    let modes = plan_modes(options::plan_variant(options));
    let is_plain = |mode: &PlanMode| {
        mode.extra_field.is_none()
            && matches!(
                (mode.answer, mode.calls),
                (AnswerRequirement::Null, CallRequirement::Required)
                    | (AnswerRequirement::Required, CallRequirement::Forbidden)
            )
    };
    if modes.iter().all(is_plain) {
        return texts.plain_modes.to_owned();
    }
    let forms = &texts.forms;
    let tools = options::plan_tools(options);
    let read_only_tools: Vec<&str> = options::callable_tools(&tools, options)
        .filter(|tool| tool.read_only)
        .map(|tool| tool.name.as_str())
        .collect();
    let mut text = String::new();
    for PlanMode { name, answer: answer_rule, calls, extra_field: field, .. } in modes {
        // A mode that allows read-only calls allows no calls if no read-only tool exists.
        let calls = if *calls == CallRequirement::ReadOnly && read_only_tools.is_empty() {
            CallRequirement::Forbidden
        } else {
            *calls
        };
        let answer_rule = match answer_rule {
            AnswerRequirement::Null => forms.null,
            AnswerRequirement::Optional if field.is_some() => forms.text_or_field,
            AnswerRequirement::Optional if calls != CallRequirement::Forbidden => forms.text_or_calls,
            AnswerRequirement::Required | AnswerRequirement::Optional => forms.text,
        };
        let calls = match calls {
            CallRequirement::Required => forms.some_calls.to_owned(),
            CallRequirement::Forbidden => forms.no_calls.to_owned(),
            CallRequirement::ReadOnly => forms.read_only.replace("{tools}", &read_only_tools.join(", ")),
        };
        let field = field.map(|field| forms.field.replace("{field}", field));
        let parts: Vec<&str> = field.as_deref().into_iter().chain([answer_rule, &calls]).collect();
        let _ = writeln!(text, "- {name}{}{}{}", forms.colon, parts.join(forms.comma), forms.end);
    }
    text
}

/// Builds an example that calls the first tool whose schema gives sample arguments; `None` if there is no
/// such tool.
fn call_example(texts: &PromptTexts, options: &Options) -> Option<Value> {
    let tools = options::plan_tools(options);
    let mut callable = options::callable_tools(&tools, options);
    let (name, args) = callable.find_map(|tool| Some((&tool.name, tool.sample_args()?)))?;
    Some(json!({
        "thought": texts.second_thought.replace("{tool}", name),
        "response_mode": "TOOL_EXECUTION",
        "direct_response": null,
        "tool_calls": [{"name": name, "args": args}],
    }))
}

/// Appends JSON in a code fence.
fn write_fenced(text: &mut String, value: &Value) {
    let _ = writeln!(text, "```json\n{value:#}\n```");
}

const EN: PromptTexts = PromptTexts {
    language: 1,
    opening: "\
Write your whole reply as one JSON object in a code fence, like this example, and nothing before or after it.

Example request:
How do I phrase a requirement about speed?

Example reply:
",
    example: r#"```json
{
  "thought": "The user asks how to write something, so this is knowledge and nothing has to be carried out. Next step: answer with a rule and a sample sentence.",
  "response_mode": "KNOWLEDGE_QA",
  "direct_response": "Name the action, the load and the limit, so that a test can decide: \"With 200 users at once, a search answers within 1 second in 95 of 100 cases.\"",
  "tool_calls": []
}
```
"#,
    turn: ExampleTurn::new(
        "Write every reply as one JSON object in a code fence, and nothing before or after it.",
        "How do I phrase a requirement about speed?",
    ),
    second_heading: "\nAnother one, for a request that needs a tool:\n",
    second_thought: "The request needs real work, and {tool} does it. Next step: call it with what the user said.",
    modes: "\nModes:\n",
    tools: "\nTools, with their arguments (`?` marks those that may be left out):\n",
    no_tools: "\nThere are no tools: tool_calls is always [].\n",
    rules: "
Rules:
- Answer the request you are given. Take over the form of the examples, never their words.
- All four fields are there: thought, response_mode, direct_response, tool_calls, in this order.
- thought is a text that says why this mode is chosen, how experts are routed if that applies, how you understand the
  request, and what the next step is.
",
    plain_modes: "\
- TOOL_EXECUTION: direct_response is null, tool_calls has at least one call. A mode that only answers: direct_response is
  a text in Markdown that is not empty, tool_calls is [].
",
    forms: ModeRuleTexts {
        colon: ": ",
        comma: "; ",
        end: ".",
        null: "direct_response is null",
        text: "direct_response is a text in Markdown that is not empty",
        text_or_calls: "direct_response is a text in Markdown that is not empty, or null if there are calls",
        text_or_field: "direct_response is a text in Markdown that is not empty, or null",
        some_calls: "tool_calls has at least one call",
        no_calls: "tool_calls is []",
        read_only: "tool_calls is [] or has calls of tools that only read, which are {tools}",
        field: "there is a further field {field}, an object with the steps",
    },
    ending: "\
- Each call has the name of one of the tools above and args, an object with the arguments of that tool.
- It is valid JSON: double quotes, a line break in a text written \\n, a quote \\\", no comments, no comma at the end.
- If you cannot reply in this form, reply only with <<ParsingError>>.
",
};

const ZH: PromptTexts = PromptTexts {
    language: 0,
    opening: "\
整个回复必须是一个放在代码围栏里的 JSON 对象，形式同下面的示例，前后不要有任何其他内容。

示例请求：
性能方面的需求该怎么写？

示例回复：
",
    example: r#"```json
{
  "thought": "用户在询问写法，属于知识咨询，不需要执行任何操作。下一步：给出一条规则和一个例句。",
  "response_mode": "KNOWLEDGE_QA",
  "direct_response": "写清动作、负载和上限，使测试能够判定，例如：“200 个用户同时在线时，100 次搜索中有 95 次在 1 秒内返回结果。”",
  "tool_calls": []
}
```
"#,
    turn: ExampleTurn::new(
        "每个回复都是一个放在代码围栏里的 JSON 对象，前后不要有任何其他内容。",
        "性能方面的需求该怎么写？",
    ),
    second_heading: "\n再举一例，请求需要用到工具：\n",
    second_thought: "请求需要实际操作，由 {tool} 完成。下一步：带上用户所说的内容调用它。",
    modes: "\n模式：\n",
    tools: "\n可用的工具及其参数（带 `?` 的可以省略）：\n",
    no_tools: "\n没有可用的工具：tool_calls 始终为 []。\n",
    rules: "
规则：
- 回答实际的请求。只沿用示例的格式，不要照抄示例的文字。
- 四个字段缺一不可，顺序为：thought、response_mode、direct_response、tool_calls。
- thought 是一段文字：详细说明为什么选择某个模式；解释专家路由逻辑（如适用）；描述对用户请求的理解；说明下一步计划。
",
    plain_modes: "\
- TOOL_EXECUTION：direct_response 为 null，tool_calls 至少有一个调用。只作回答的模式：direct_response 是非空的 Markdown 文本，
  tool_calls 为 []。
",
    forms: ModeRuleTexts {
        colon: "：",
        comma: "；",
        end: "。",
        null: "direct_response 为 null",
        text: "direct_response 是非空的 Markdown 文本",
        text_or_calls: "direct_response 是非空的 Markdown 文本，有调用时也可以为 null",
        text_or_field: "direct_response 是非空的 Markdown 文本，也可以为 null",
        some_calls: "tool_calls 至少有一个调用",
        no_calls: "tool_calls 为 []",
        read_only: "tool_calls 为 []，或者只调用只读的工具，即 {tools}",
        field: "另有一个字段 {field}，是列出各步骤的对象",
    },
    ending: "\
- 每个调用都有 name（上面列出的工具之一）和 args（一个对象，即该工具的参数）。
- 必须是合法的 JSON：使用双引号，文本里的换行写成 \\n，引号写成 \\\"，没有注释，末尾没有多余的逗号。
- 如果无法按此格式回复，就只输出 <<ParsingError>>。
",
};
