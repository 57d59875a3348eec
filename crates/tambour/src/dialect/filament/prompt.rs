//! Format instructions for a system prompt (F-237), built from the structure and from the texts of the
//! built-in protocols, each of which describes some tags. A worked example of the mandatory parts comes
//! first, because small models follow it better than rules; the request to write comes last, because small
//! models continue what they read last.

use super::options;
use super::tags::{ElementKind, TagTable};
use crate::dialect::FormatInstructions;
use crate::options::{Language, Options};
use crate::protocol::{CORE_PROTOCOL, ProtocolRegistry};
use crate::structure::{ElementBody, ElementName, ExpectedElement, ExpectedStructure};

/// Builds the instructions.
pub(super) fn prompt(options: &Options) -> FormatInstructions {
    let filament_options = options::filament_options(options);
    let mut prompt_options = filament_options.clone();
    prompt_options.structure = Some(prompt_structure(options));
    let tags = TagTable::new(&prompt_options);
    let expected = prompt_options.structure.unwrap_or_default();
    let texts = match options.texts.language {
        Language::Zh => &ZH,
        Language::En => &EN,
    };
    let registry = ProtocolRegistry::builtin();
    let content_name = tags.first_of_kind(ElementKind::Content).map(|index| &*expected.elements[index].name);
    let part = |index: usize| InstructionPart {
        element: &expected.elements[index],
        kind: tags.kind(index),
        content_name,
        options,
        registry: &registry,
    };
    let views = filament_options.views.as_deref();
    // The example of an optional element is next to its rule, not in the example reply: a small model
    // would copy it into every reply.
    let is_all_optional = expected.elements.iter().all(|element| !element.is_mandatory);
    let (mandatory, optional): (Vec<usize>, Vec<usize>) = order_elements(&expected)
        .into_iter()
        .partition(|&index| is_all_optional || expected.elements[index].is_mandatory);
    let example: String = mandatory.iter().map(|&index| part(index).example(views)).collect();
    let mut rules = texts.rules.to_owned();
    rules.extend(mandatory.iter().map(|&index| part(index).rule(texts)));
    if !is_all_optional {
        let mandatory_tags: Vec<String> =
            mandatory.iter().map(|&index| format!("<{}>", expected.elements[index].name)).collect();
        rules += &texts.mandatory.replace("{tags}", &mandatory_tags.join(texts.conjunction));
    }
    rules += texts.close_rule;
    if !optional.is_empty() {
        rules += texts.optional;
        for index in optional {
            rules += &part(index).rule(texts);
            rules += &part(index).example(views);
        }
    }
    for element in &expected.elements {
        // The tag's own rule already says that the tag follows the thought or the content.
        let is_thought_or_content = |name: &ElementName| {
            let index = expected.elements.iter().position(|element| element.name == *name);
            let kind = index.map(|index| tags.kind(index));
            matches!(kind, Some(ElementKind::Thought | ElementKind::Content))
        };
        if element.predecessors.iter().any(|name| !is_thought_or_content(name)) {
            let predecessors: Vec<String> =
                element.predecessors.iter().map(|name| format!("<{name}>")).collect();
            rules += &texts
                .order
                .replace("{tag}", &element.name)
                .replace("{tags}", &predecessors.join(texts.conjunction));
        }
    }
    let tools = options.tools.iter().flat_map(|tools| tools.iter());
    let mut tools = tools.filter(|tool| tool.allows_caller(options.caller.as_deref())).peekable();
    if tools.peek().is_some() && tags.first_of_kind(ElementKind::Call).is_some() {
        rules += texts.tools;
        for tool in tools {
            let description = tool.description(options.texts.language);
            let separator = if description.is_empty() { "" } else { ": " };
            rules += &format!("  - {}{}{separator}{description}\n", tool.name, tool.signature());
        }
    }
    if expected.elements.iter().any(|element| element.body == ElementBody::Json) {
        rules += texts.json;
    }
    if let Some(content_name) = content_name {
        rules += &texts.reply_request.replace("{tag}", content_name);
    }
    FormatInstructions {
        opening: texts.opening.into(),
        example: example.into(),
        rules: rules.into(),
        turn: None,
    }
}

/// Returns the structure that the instructions describe: the configured one, else that of the built-in
/// protocols.
pub(super) fn prompt_structure(options: &Options) -> ExpectedStructure {
    let filament_options = options::filament_options(options);
    let has_views = filament_options.views.is_some();
    filament_options.structure.unwrap_or_else(|| default_structure(options, has_views))
}

/// Returns the structure of all built-in protocols: without calls if there are no tools, and without
/// components if no views are configured.
fn default_structure(options: &Options, has_views: bool) -> ExpectedStructure {
    let registry = ProtocolRegistry::builtin();
    let ids = registry.iter().map(|protocol| protocol.id.as_str());
    let prompt_ids = ids.filter(|id| match *id {
        "tool_call" => options.tools.is_some(),
        "ui_component" => has_views,
        _ => true,
    });
    registry.expected_structure(prompt_ids).0
}

/// Returns the indexes of the elements in an order in which each follows its predecessors.
pub(super) fn order_elements(expected: &ExpectedStructure) -> Vec<usize> {
    let count = expected.elements.len();
    let mut order: Vec<usize> = Vec::with_capacity(count);
    while order.len() < count {
        let next_index = (0..count).find(|&candidate| {
            let is_placed = |name: &str| order.iter().any(|&index| expected.elements[index].name == name);
            !order.contains(&candidate)
                && expected.elements[candidate].predecessors.iter().all(|name| is_placed(name))
        });
        match next_index {
            Some(index) => order.push(index),
            // A hand-written structure may hold a cycle: the elements left over keep their order.
            None => order.extend((0..count).filter(|index| !order.contains(index)).collect::<Vec<_>>()),
        }
    }
    order
}

/// One element of the structure, with the sources of its part of the instructions.
struct InstructionPart<'a> {
    element: &'a ExpectedElement,
    kind: ElementKind,
    /// Tag name of the content, if the structure has one.
    content_name: Option<&'a str>,
    options: &'a Options,
    registry: &'a ProtocolRegistry,
}

impl InstructionPart<'_> {
    /// Returns the name that the built-in examples and rules use for the element.
    fn standard_name(&self) -> &str {
        match self.kind {
            ElementKind::Content => "content",
            ElementKind::Custom => "",
            _ => self.element.role(),
        }
    }

    /// Returns an example of the element, or nothing if there is no tool to show. A component shows the first
    /// view.
    fn example(&self, views: Option<&[String]>) -> String {
        let name = &*self.element.name;
        let example = match (self.kind, &self.options.tools) {
            (ElementKind::Call, Some(tools)) => {
                let mut callable_tools =
                    tools.iter().filter(|tool| tool.allows_caller(self.options.caller.as_deref()));
                let Some((tool, args)) =
                    callable_tools.find_map(|tool| Some((&tool.name, tool.sample_args()?)))
                else {
                    return String::new();
                };
                let tool = crate::lex::entity::encode(tool);
                return format!("<{name} name=\"{tool}\">\n{args}\n</{name}>\n");
            }
            (ElementKind::Custom, _) => {
                return match self.element.body {
                    ElementBody::Json => format!("<{name}>\n{{}}\n</{name}>\n"),
                    ElementBody::Empty => format!("<{name}></{name}>\n"),
                    ElementBody::Text | ElementBody::Markup => format!("<{name}>\n…\n</{name}>\n"),
                };
            }
            _ => self.builtin_example(),
        };
        let example = match views.and_then(<[String]>::first) {
            Some(view) if self.kind == ElementKind::Component => {
                // The view in the built-in example.
                example.replace("widget.inventory_grid", view)
            }
            _ => example,
        };
        let standard_name = self.standard_name();
        example
            .replace(&format!("<{standard_name}"), &format!("<{name}"))
            .replace(&format!("</{standard_name}>"), &format!("</{name}>"))
    }

    /// Returns the part of a built-in example that shows the element.
    fn builtin_example(&self) -> String {
        let standard_name = self.standard_name();
        let language = self.options.texts.language;
        let id = if matches!(self.kind, ElementKind::Thought | ElementKind::Content) {
            CORE_PROTOCOL
        } else {
            self.protocol_id()
        };
        // The registry puts the core protocol first.
        let examples = self.registry.examples([id], language);
        let example = if id == CORE_PROTOCOL { examples.first() } else { examples.get(1) };
        let example = example.copied().unwrap_or_default();
        let Some(start) = example.find(&format!("<{standard_name}")) else { return String::new() };
        let closing_tag = format!("</{standard_name}>\n");
        let end = match example[start..].find(&closing_tag) {
            Some(index) => start + index + closing_tag.len(),
            None => example.len(),
        };
        example[start..end].to_owned()
    }

    /// Returns the id of the built-in protocol that describes the element, if that is not the core.
    fn protocol_id(&self) -> &str {
        match self.kind {
            ElementKind::Update => "variable_update_v2",
            _ => self.standard_name(),
        }
    }

    /// Returns the rule of the element: the item of its protocol's instructions that begins with its tag.
    fn rule(&self, texts: &InstructionTexts) -> String {
        let name = &*self.element.name;
        if self.kind == ElementKind::Custom {
            return texts.custom.replace("{tag}", name);
        }
        let standard_name = self.standard_name();
        let id = if matches!(self.kind, ElementKind::Thought | ElementKind::Content) {
            CORE_PROTOCOL
        } else {
            self.protocol_id()
        };
        // The registry puts the core protocol first.
        let instructions = self.registry.instructions([id], self.options.texts.language);
        let text = if id == CORE_PROTOCOL { instructions.first() } else { instructions.get(1) };
        let items = text.copied().unwrap_or_default().split("\n- ").map(|item| item.trim_start_matches("- "));
        let mut items = items.filter(|item| item.starts_with(&format!("<{standard_name}")));
        let mut item =
            items.next().unwrap_or_default().replace(&format!("<{standard_name}"), &format!("<{name}"));
        if let Some(content_name) = self.content_name {
            item = item.replace("<content>", &format!("<{content_name}>"));
        }
        format!("- {item}\n")
    }
}

/// Texts of one language. `{tag}` is replaced by a tag, `{tags}` by a list of tags.
struct InstructionTexts {
    /// Task, and heading of the example.
    opening: &'static str,
    /// Heading of the rules, and the first rule.
    rules: &'static str,
    /// Rule of a custom tag.
    custom: &'static str,
    /// Rule that tags are mandatory.
    mandatory: &'static str,
    /// Rule that a tag follows others.
    order: &'static str,
    /// Separator between tags in a rule.
    conjunction: &'static str,
    /// Rule that every tag is closed.
    close_rule: &'static str,
    /// Heading of the optional tags.
    optional: &'static str,
    /// Heading of the list of tools.
    tools: &'static str,
    /// Rule of JSON bodies.
    json: &'static str,
    /// Last sentence, which asks for the reply.
    reply_request: &'static str,
}

const EN: InstructionTexts = InstructionTexts {
    opening: "\
Write your whole reply in tags, in the form of this example, and nothing outside of the tags.

Example reply:
",
    rules: "
Rules:
- Answer the request you are given. Take over the form of the example, never its words.
",
    custom: "- <{tag}>: content that fits its name.\n",
    mandatory: "- Always write {tags}.\n",
    order: "- <{tag}> comes after {tags}, if present.\n",
    conjunction: " and ",
    close_rule: "- Close every tag. Only <media /> closes itself. No code fence around the reply.\n",
    optional: "
Other tags, each with an example. Write them only when they are needed:
",
    tools: "- Tools, with their arguments (`?` marks those that may be left out):\n",
    json: "- JSON has double quotes, no comments, and no comma at the end.\n",
    reply_request: "
Now write your reply: your own answer to the user, between <{tag}> and </{tag}>.
",
};

const ZH: InstructionTexts = InstructionTexts {
    opening: "\
整个回复都写在标签里，格式同下面的示例，标签之外不要有任何内容。

示例回复：
",
    rules: "
规则：
- 回答实际的请求。只沿用示例的格式，不要照抄示例的文字。
",
    custom: "- <{tag}>：内容如其名。\n",
    mandatory: "- {tags} 必须有。\n",
    order: "- <{tag}> 写在 {tags} 之后（有哪个就在哪个之后）。\n",
    conjunction: "、",
    close_rule: "- 每个标签都要闭合，只有 <media /> 是自闭合的；不要用代码围栏包住回复。\n",
    optional: "
其他标签，各有一个示例，需要时才写：
",
    tools: "- 可用的工具及其参数（带 `?` 的可以省略）：\n",
    json: "- JSON 使用双引号，没有注释，末尾没有多余的逗号。\n",
    reply_request: "
现在写你的回复：先写 <{tag}>，接着是你自己对用户的回答，再写 </{tag}>。
",
};
