//! Protocols that this library defines. Their examples tell one story, so that together they form one reply.

use super::{CORE_PROTOCOL, PromptProtocol};
use crate::structure::{ElementBody, ExpectedElement};

/// Returns the protocols in their order, the core first.
pub(super) fn builtin_protocols() -> Vec<PromptProtocol> {
    BUILTIN_PROTOCOLS.iter().map(BuiltinProtocol::to_protocol).collect()
}

/// A protocol in static form.
struct BuiltinProtocol {
    id: &'static str,
    version: &'static str,
    /// Each tag: its name, its body, and whether it is mandatory.
    tags: &'static [(&'static str, ElementBody, bool)],
    /// Tag that all tags of the protocol must follow.
    predecessor: Option<&'static str>,
    /// Instruction for a model, in Chinese and in English.
    instruction: [&'static str; 2],
    /// Example part of a reply, in Chinese and in English.
    example: [&'static str; 2],
}

impl BuiltinProtocol {
    fn to_protocol(&self) -> PromptProtocol {
        let to_element = |(name, body, is_mandatory): &(&'static str, ElementBody, bool)| ExpectedElement {
            body: *body,
            is_mandatory: *is_mandatory,
            // A mandatory tag occurs exactly once.
            is_repeatable: !is_mandatory,
            predecessors: self.predecessor.into_iter().map(Into::into).collect(),
            ..ExpectedElement::new(*name)
        };
        PromptProtocol {
            id: self.id.to_owned(),
            version: self.version.to_owned(),
            elements: self.tags.iter().map(to_element).collect(),
            instruction: self.instruction.map(str::to_owned),
            examples: self.example.map(|example| vec![example.to_owned()]),
        }
    }
}

const BUILTIN_PROTOCOLS: &[BuiltinProtocol] = &[
    BuiltinProtocol {
        id: CORE_PROTOCOL,
        version: "2.3",
        tags: &[("thought", ElementBody::Text, false), ("content", ElementBody::Markup, true)],
        predecessor: None,
        instruction: [
            "\
- <thought> 写你的思考，放在 <content> 之前，用户看不到。
- <content> 写给用户看的正文，可以用 Markdown。不给用户看的备注写进 <!-- -->，不要写在正文里。",
            "\
- <thought>, before <content>: your thinking. The user does not see it.
- <content>: the text for the user, in Markdown. Internal remarks go into <!-- -->, never into the visible text.",
        ],
        example: [
            "\
<thought>
午夜，枯井边。先写气氛，再给选择。
</thought>
<content>
井绳吱呀作响，井底有人应了一声。
<!-- 应声的是磨坊主 -->
</content>
",
            "\
<thought>
Midnight, the old well. First the mood, then a choice.
</thought>
<content>
The rope creaks. Down in the well somebody answers.
<!-- it is the miller who answers -->
</content>
",
        ],
    },
    BuiltinProtocol {
        id: "variable_update_v2",
        version: "2.0",
        tags: &[("variable_update", ElementBody::Json, false)],
        predecessor: Some("content"),
        instruction: [
            "\
- <variable_update> 写变量的变化，放在 <content> 之后：先写 <analysis>，再写一个 JSON 数组，每项是 [\"操作\", \"路径\", 值]。
  操作有 SET、ADD、SUB、MUL、DIV、PUSH、POP、DELETE；POP 和 DELETE 没有值。路径用点分隔，例如 hero.hp。",
            "\
- <variable_update>, after <content>: what changes. First <analysis>, then one JSON array of [\"OP\", \"path\", value].
  OP is SET, ADD, SUB, MUL, DIV, PUSH, POP or DELETE; POP and DELETE have no value. A path has dots: hero.hp.",
        ],
        example: [
            "\
<variable_update>
  <analysis>发现井底有人，火把快灭了</analysis>
  [
    [\"SET\", \"location\", \"枯井\"],
    [\"SUB\", \"torch.minutes\", 10]
  ]
</variable_update>
",
            "\
<variable_update>
  <analysis>somebody is in the well, the torch burns down</analysis>
  [
    [\"SET\", \"location\", \"old well\"],
    [\"SUB\", \"torch.minutes\", 10]
  ]
</variable_update>
",
        ],
    },
    BuiltinProtocol {
        id: "status_bar",
        version: "2.3",
        tags: &[("status_bar", ElementBody::Markup, false)],
        predecessor: None,
        instruction: [
            "- <status_bar> 写状态栏：每项一个标签，名称自定。",
            "- <status_bar>: the status, one tag for each item, with a name of your choice.",
        ],
        example: [
            "\
<status_bar>
  <mood>紧张</mood>
  <location>枯井</location>
</status_bar>
",
            "\
<status_bar>
  <mood>tense</mood>
  <location>old well</location>
</status_bar>
",
        ],
    },
    BuiltinProtocol {
        id: "details",
        version: "2.3",
        tags: &[("details", ElementBody::Markup, false)],
        predecessor: None,
        instruction: [
            "- <details> 写可折叠的补充内容，<summary> 是它的标题。",
            "- <details>: more text, folded, with its heading in <summary>.",
        ],
        example: [
            "\
<details>
  <summary>摘要</summary>
  井底有人回应，尚不知是谁。
</details>
",
            "\
<details>
  <summary>Summary</summary>
  Somebody answers from the well; nobody knows who.
</details>
",
        ],
    },
    BuiltinProtocol {
        id: "choice",
        version: "2.3",
        tags: &[("choice", ElementBody::Markup, false)],
        predecessor: None,
        instruction: [
            "- <choice> 让用户选择：<prompt> 是问题，<options> 里每个 <option> 有不同的 id。",
            "- <choice>: a choice for the user. <prompt> asks; each <option> in <options> has an id of its own.",
        ],
        example: [
            "\
<choice>
  <prompt>你要怎么做？</prompt>
  <options>
    <option id=\"call\">朝井里喊话</option>
    <option id=\"climb\">顺着绳子下去</option>
  </options>
</choice>
",
            "\
<choice>
  <prompt>What do you do?</prompt>
  <options>
    <option id=\"call\">Call into the well</option>
    <option id=\"climb\">Climb down the rope</option>
  </options>
</choice>
",
        ],
    },
    BuiltinProtocol {
        id: "media",
        version: "2.3",
        tags: &[("media", ElementBody::Empty, false)],
        predecessor: None,
        instruction: [
            "- <media /> 显示图片、音频或视频：type 是 image、audio 或 video，src 是相对路径或 https 地址，alt 是说明。",
            "- <media />: an image, audio or video. type is one of these, src a relative path or https address, alt describes it.",
        ],
        example: [
            "<media type=\"image\" src=\"assets/well.jpg\" alt=\"午夜的枯井\" />\n",
            "<media type=\"image\" src=\"assets/well.jpg\" alt=\"the well at midnight\" />\n",
        ],
    },
    BuiltinProtocol {
        id: "tool_call",
        version: "2.3",
        tags: &[("tool_call", ElementBody::Json, false)],
        predecessor: None,
        instruction: [
            "- <tool_call name=\"工具名\"> 调用工具，里面是一个 JSON 对象，即参数。",
            "- <tool_call name=\"tool\">: calls a tool; inside stands one JSON object with its arguments.",
        ],
        example: [
            "\
<tool_call name=\"roll_dice\">
{\"formula\": \"1d20\"}
</tool_call>
",
            "\
<tool_call name=\"roll_dice\">
{\"formula\": \"1d20\"}
</tool_call>
",
        ],
    },
    BuiltinProtocol {
        id: "ui_component",
        version: "2.3",
        tags: &[("ui_component", ElementBody::Json, false)],
        predecessor: None,
        instruction: [
            "- <ui_component view=\"命名空间.组件\"> 显示界面组件，里面是一个 JSON 对象。",
            "- <ui_component view=\"namespace.component\">: shows a component; inside stands one JSON object.",
        ],
        example: [
            "\
<ui_component view=\"widget.inventory_grid\">
{\"filter\": \"all\", \"columns\": 3}
</ui_component>
",
            "\
<ui_component view=\"widget.inventory_grid\">
{\"filter\": \"all\", \"columns\": 3}
</ui_component>
",
        ],
    },
];
