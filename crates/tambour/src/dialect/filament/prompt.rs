//! Format instructions for a system prompt (F-237), built from the structure. A worked example of the
//! mandatory parts comes first, because small models follow it better than rules; the request to write comes
//! last, because they continue what they read last.

use super::options;
use super::tags::{Kind, Tags};
use crate::dialect::Prompt;
use crate::options::{Language, Options};
use crate::protocol::{CORE, Registry};
use crate::structure::{Body, Element, Expected, Name};

/// Builds the instructions.
pub(super) fn prompt(options: &Options) -> Prompt {
    let own = options::of(options);
    let mut shown = own.clone();
    shown.structure = Some(own.structure.clone().unwrap_or_else(|| usual(options, own.views.is_some())));
    let tags = Tags::new(&shown);
    let expected = shown.structure.unwrap_or_default();
    let words = match options.texts.language {
        Language::Zh => &ZH,
        Language::En => &EN,
    };
    let registry = Registry::builtin();
    let content = tags.first(Kind::Content).map(|at| &*expected.elements[at].name);
    let part = |at: usize| Part {
        element: &expected.elements[at],
        kind: tags.kind(at),
        content,
        options,
        registry: &registry,
    };
    let views = own.views.as_deref();
    // An optional element has its example beside its rule: in the example reply, a small model would copy it
    // into every reply.
    let every = expected.elements.iter().all(|element| !element.mandatory);
    let (main, others): (Vec<usize>, Vec<usize>) =
        in_order(&expected).into_iter().partition(|&at| every || expected.elements[at].mandatory);
    let example: String = main.iter().map(|&at| part(at).example(views)).collect();
    let mut rules = words.rules.to_owned();
    rules.extend(main.iter().map(|&at| part(at).rule(words)));
    if !every {
        let must: Vec<String> = main.iter().map(|&at| format!("<{}>", expected.elements[at].name)).collect();
        rules += &words.must.replace("{tags}", &must.join(words.and));
    }
    rules += words.close;
    if !others.is_empty() {
        rules += words.others;
        for at in others {
            rules += &part(at).rule(words);
            rules += &part(at).example(views);
        }
    }
    for element in &expected.elements {
        // An order after the thought or the content is stated with the tag itself.
        let usual = |first: &Name| {
            let kind =
                expected.elements.iter().position(|element| element.name == *first).map(|at| tags.kind(at));
            matches!(kind, Some(Kind::Thought | Kind::Content))
        };
        if element.after.iter().any(|first| !usual(first)) {
            let first: Vec<String> = element.after.iter().map(|name| format!("<{name}>")).collect();
            rules += &words.after.replace("{tag}", &element.name).replace("{tags}", &first.join(words.and));
        }
    }
    let tools = options.tools.iter().flat_map(|tools| tools.iter());
    let mut tools = tools.filter(|tool| tool.allows(options.caller.as_deref())).peekable();
    if tools.peek().is_some() && tags.first(Kind::Call).is_some() {
        rules += words.tools;
        for tool in tools {
            let about = tool.description(options.texts.language);
            let colon = if about.is_empty() { "" } else { ": " };
            rules += &format!("  - {}{}{colon}{about}\n", tool.name, tool.signature());
        }
    }
    if expected.elements.iter().any(|element| element.body == Body::Json) {
        rules += words.json;
    }
    if let Some(content) = content {
        rules += &words.last.replace("{tag}", content);
    }
    Prompt { opening: words.opening.into(), example: example.into(), rules: rules.into() }
}

/// Returns the default structure: without calls and components if there are none.
fn usual(options: &Options, views: bool) -> Expected {
    let registry = Registry::builtin();
    let ids = registry.iter().map(|protocol| protocol.id.as_str());
    let shown = ids.filter(|id| match *id {
        "tool_call" => options.tools.is_some(),
        "ui_component" => views,
        _ => true,
    });
    registry.expected(shown).0
}

/// Orders the elements so that each comes after those it must follow.
fn in_order(expected: &Expected) -> Vec<usize> {
    let count = expected.elements.len();
    let mut order: Vec<usize> = Vec::with_capacity(count);
    while order.len() < count {
        let ready = (0..count).find(|&at| {
            let placed = |name: &str| order.iter().any(|&known| expected.elements[known].name == name);
            !order.contains(&at) && expected.elements[at].after.iter().all(|first| placed(first))
        });
        match ready {
            Some(at) => order.push(at),
            // A hand-written structure may hold a cycle.
            None => order.extend((0..count).filter(|at| !order.contains(at)).collect::<Vec<_>>()),
        }
    }
    order
}

/// One element of the instructions.
struct Part<'a> {
    element: &'a Element,
    kind: Kind,
    /// Tag of the content, if there is one.
    content: Option<&'a str>,
    options: &'a Options,
    registry: &'a Registry,
}

impl Part<'_> {
    /// Returns the standard name of the element.
    fn usual_name(&self) -> &str {
        match self.kind {
            Kind::Content => "content",
            Kind::Own => "",
            _ => self.element.role(),
        }
    }

    fn example(&self, views: Option<&[String]>) -> String {
        let name = &*self.element.name;
        let shown = match (self.kind, &self.options.tools) {
            (Kind::Call, Some(tools)) => {
                let mut callable = tools.iter().filter(|tool| tool.allows(self.options.caller.as_deref()));
                let Some((tool, args)) = callable.find_map(|tool| Some((&tool.name, tool.sample_args()?)))
                else {
                    return String::new();
                };
                let tool = crate::lex::entity::encode(tool);
                return format!("<{name} name=\"{tool}\">\n{args}\n</{name}>\n");
            }
            (Kind::Own, _) => {
                return match self.element.body {
                    Body::Json => format!("<{name}>\n{{}}\n</{name}>\n"),
                    Body::Empty => format!("<{name}></{name}>\n"),
                    Body::Text | Body::Markup => format!("<{name}>\n…\n</{name}>\n"),
                };
            }
            _ => self.builtin(),
        };
        let shown = match views.and_then(<[String]>::first) {
            Some(view) if self.kind == Kind::Component => shown.replace("widget.inventory_grid", view),
            _ => shown,
        };
        let usual = self.usual_name();
        shown
            .replace(&format!("<{usual}"), &format!("<{name}"))
            .replace(&format!("</{usual}>"), &format!("</{name}>"))
    }

    /// Returns the part of a built-in example that shows the element.
    fn builtin(&self) -> String {
        let usual = self.usual_name();
        let language = self.options.texts.language;
        let id = if matches!(self.kind, Kind::Thought | Kind::Content) { CORE } else { self.id() };
        let examples = self.registry.examples([id], language);
        let all = if id == CORE { examples.first() } else { examples.get(1) };
        let all = all.copied().unwrap_or_default();
        let Some(start) = all.find(&format!("<{usual}")) else { return String::new() };
        let close = format!("</{usual}>\n");
        let end = all[start..].find(&close).map_or(all.len(), |end| start + end + close.len());
        all[start..end].to_owned()
    }

    fn id(&self) -> &str {
        match self.kind {
            Kind::Update => "variable_update_v2",
            _ => self.usual_name(),
        }
    }

    fn rule(&self, words: &Words) -> String {
        let name = &*self.element.name;
        if self.kind == Kind::Own {
            return words.own.replace("{tag}", name);
        }
        let usual = self.usual_name();
        let id = if matches!(self.kind, Kind::Thought | Kind::Content) { CORE } else { self.id() };
        let texts = self.registry.instructions([id], self.options.texts.language);
        let text = if id == CORE { texts.first() } else { texts.get(1) };
        let items = text.copied().unwrap_or_default().split("\n- ").map(|item| item.trim_start_matches("- "));
        let mut items = items.filter(|item| item.starts_with(&format!("<{usual}")));
        let mut item = items.next().unwrap_or_default().replace(&format!("<{usual}"), &format!("<{name}"));
        if let Some(content) = self.content {
            item = item.replace("<content>", &format!("<{content}>"));
        }
        format!("- {item}\n")
    }
}

/// Texts of one language.
struct Words {
    opening: &'static str,
    rules: &'static str,
    own: &'static str,
    must: &'static str,
    after: &'static str,
    and: &'static str,
    close: &'static str,
    others: &'static str,
    tools: &'static str,
    json: &'static str,
    last: &'static str,
}

const EN: Words = Words {
    opening: "\
Write your whole reply in tags, in the form of this example, and nothing outside of the tags.

Example reply:
",
    rules: "
Rules:
- Answer the request you are given. Take over the form of the example, never its words.
",
    own: "- <{tag}>: as its name says.\n",
    must: "- {tags} must be there.\n",
    after: "- <{tag}> stands behind {tags}, of those that are there.\n",
    and: " and ",
    close: "- Close every tag. Only <media /> closes itself. No code fence around the reply.\n",
    others: "
Other tags, each with an example. Write them only when they are needed:
",
    tools: "- Tools, with their arguments (`?` marks those that may be left out):\n",
    json: "- JSON has double quotes, no comments, and no comma at the end.\n",
    last: "
Now write your reply: your own answer to the user, between <{tag}> and </{tag}>.
",
};

const ZH: Words = Words {
    opening: "\
整个回复都写在标签里，格式同下面的示例，标签之外不要有任何内容。

示例回复：
",
    rules: "
规则：
- 回答实际的请求。只沿用示例的格式，不要照抄示例的文字。
",
    own: "- <{tag}>：内容如其名。\n",
    must: "- {tags} 必须有。\n",
    after: "- <{tag}> 写在 {tags} 之后（有哪个就在哪个之后）。\n",
    and: "、",
    close: "- 每个标签都要闭合，只有 <media /> 是自闭合的；不要用代码围栏包住回复。\n",
    others: "
其他标签，各有一个示例，需要时才写：
",
    tools: "- 可用的工具及其参数（带 `?` 的可以省略）：\n",
    json: "- JSON 使用双引号，没有注释，末尾没有多余的逗号。\n",
    last: "
现在写你的回复：先写 <{tag}>，接着是你自己对用户的回答，再写 </{tag}>。
",
};
