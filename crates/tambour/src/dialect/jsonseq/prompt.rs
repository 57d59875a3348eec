//! Format instructions for a system prompt (T-066). The example comes first: small models follow it better
//! than rules.

use std::borrow::Cow;

use crate::dialect::{ExampleTurn, FormatInstructions};
use crate::options::{Language, Options};

/// Returns the format instructions.
pub(super) fn prompt(options: &Options) -> FormatInstructions {
    match options.texts.language {
        Language::Zh => ZH,
        Language::En => EN,
    }
}

const EN: FormatInstructions = FormatInstructions {
    opening: Cow::Borrowed("\
Write your whole reply as JSON Lines in the form of this example, and nothing before or after them.

Example request:
How do I keep basil alive indoors?

Example reply:
"),
    example: Cow::Borrowed(r###"{"event":"serp_summary","data":{"text":"The user wants to keep a basil plant alive indoors."}}
{"event":"thinking_start","data":{}}
{"event":"phase_start","data":{"id":1,"title":"Find the usual causes"}}
{"event":"phase_delta","data":{"id":1,"text":"Basil in a kitchen mostly dies of too little light or of wet roots."}}
{"event":"phase_start","data":{"id":2,"title":"Plan the answer"}}
{"event":"phase_delta","data":{"id":2,"text":"Light first, then water. Short steps with numbers."}}
{"event":"thinking_end","data":{}}
{"event":"final_delta","data":{"text":"## Basil indoors\n\n1. **Light**: at least six hours a day, best at a south window.\n"}}
{"event":"final_delta","data":{"text":"2. **Water**: when the top of the soil is dry; empty the saucer."}}
{"event":"serp_queries","data":{"queries":["basil indoors hours of light","how often to water basil in a pot"]}}
{"event":"final_end","data":{}}
"###),
    rules: Cow::Borrowed("
Rules:
- Answer the request you are given. Take over the form of the example, never its words.
- Each line is one complete JSON object with \"event\" and \"data\". No code fence, no array around the lines, no line
  breaks inside an object: a line break in a text is written \\n, a quote \\\".
- The order is serp_summary (may be left out), thinking_start, the phases, thinking_end, one or more final_delta,
  serp_queries (may be left out), final_end. There are no other events.
- serp_summary says in one or two plain sentences what the user wants.
- Phases are numbered 1, 2, 3 and so on; write two or more if you can. phase_start has a title that is not empty, each
  phase_delta the id of the phase that was started last. Their texts are plain text and not empty.
- The final_delta texts, put together, are the answer in Markdown.
- serp_queries has one to three search queries, five at most, all different, at most 80 characters each, without names,
  addresses, numbers or other personal data.
- If you cannot reply in this form, reply only with <<ParsingError>>.
"),
    turn: Some(ExampleTurn::new(
        "Write every reply as JSON Lines, and nothing before or after them.",
        "How do I keep basil alive indoors?",
    )),
};

const ZH: FormatInstructions = FormatInstructions {
    opening: Cow::Borrowed("\
整个回复必须是下面示例那样的 JSON Lines，前后不要有任何其他内容。

示例请求：
室内养的罗勒怎样才不会死？

示例回复：
"),
    example: Cow::Borrowed(r###"{"event":"serp_summary","data":{"text":"用户想知道如何在室内养活罗勒。"}}
{"event":"thinking_start","data":{}}
{"event":"phase_start","data":{"id":1,"title":"找出常见原因"}}
{"event":"phase_delta","data":{"id":1,"text":"厨房里的罗勒多半死于光照不足或根部积水。"}}
{"event":"phase_start","data":{"id":2,"title":"规划回答"}}
{"event":"phase_delta","data":{"id":2,"text":"先讲光照，再讲浇水；步骤简短，带上数字。"}}
{"event":"thinking_end","data":{}}
{"event":"final_delta","data":{"text":"## 室内养罗勒\n\n1. **光照**：每天至少六小时，最好放在朝南的窗边。\n"}}
{"event":"final_delta","data":{"text":"2. **浇水**：表土干了再浇，倒掉托盘里的积水。"}}
{"event":"serp_queries","data":{"queries":["罗勒室内光照时长","盆栽罗勒多久浇一次水"]}}
{"event":"final_end","data":{}}
"###),
    rules: Cow::Borrowed("
规则：
- 回答实际的请求。只沿用示例的格式，不要照抄示例的文字。
- 每行是一个完整的 JSON 对象，带 \"event\" 和 \"data\"。不要用代码围栏，不要把各行放进数组，对象内部不要换行：文本里的换行写成
  \\n，引号写成 \\\"。
- 顺序为 serp_summary（可省略）、thinking_start、各个 phase、thinking_end、一个或多个 final_delta、serp_queries（可省略）、
  final_end。没有其他事件。
- serp_summary 用一两句纯文本说明用户想要什么。
- phase 依次编号为 1、2、3……最好写两个以上。phase_start 的 title 不能为空，每个 phase_delta 的 id 是最近开始的那个 phase 的
  id。它们的 text 是非空的纯文本。
- 所有 final_delta 的 text 连起来就是 Markdown 格式的回答。
- serp_queries 放一到三个搜索查询，最多五个，互不重复，每个不超过 80 个字符，不含姓名、地址、号码等个人信息。
- 如果无法按此格式回复，就只输出 <<ParsingError>>。
"),
    turn: Some(ExampleTurn::new(
        "每个回复都是 JSON Lines，前后不要有任何其他内容。",
        "室内养的罗勒怎样才不会死？",
    )),
};
