//! Format instructions for a system prompt (T-066). The example comes first: small models follow it better
//! than rules.

use std::borrow::Cow;

use super::ThinkingMlOptions;
use crate::dialect::{ExampleTurn, FormatInstructions};
use crate::options::{Language, Options};

/// Builds the instructions in the language of the options.
pub(super) fn prompt(options: &Options) -> FormatInstructions {
    let (prompt, required, optional) = match options.texts.language {
        Language::Zh => (ZH, ZH_REQUIRED, ZH_OPTIONAL),
        Language::En => (EN, EN_REQUIRED, EN_OPTIONAL),
    };
    let block = if options.section::<ThinkingMlOptions>().is_block_optional { optional } else { required };
    FormatInstructions { rules: prompt.rules.replace("{block}", block).into(), ..prompt }
}

// Sentences about the queries block, required or optional (T-040), which replace `{block}` in the rules.
const EN_REQUIRED: &str = "<final> ends with the three lines of the queries block, not indented:";
const EN_OPTIONAL: &str =
    "<final> may end with the three lines of the queries block (they may be left out), not indented:";
const ZH_REQUIRED: &str = "<final> 以三行的查询块结尾，不缩进：";
const ZH_OPTIONAL: &str = "<final> 可以用三行的查询块结尾（也可省略），不缩进：";

const EN: FormatInstructions = FormatInstructions {
    opening: Cow::Borrowed("\
Write your whole reply in the form of this example, and nothing before or after it.

Example request:
How do I keep basil alive indoors?

Example reply:
"),
    example: Cow::Borrowed("\
<serp>The user wants to keep a basil plant alive indoors.</serp>
<thinking>
<phase id=\"1\">
<title>Find the usual causes</title>
Basil in a kitchen mostly dies of too little light or of wet roots.
</phase>
<phase id=\"2\">
<title>Plan the answer</title>
Light first, then water, then harvesting. Short steps with numbers.
</phase>
</thinking>
<final>
## Basil indoors

1. **Light**: at least six hours a day, best at a south window.
2. **Water**: when the top of the soil is dry; empty the saucer.
3. **Harvest**: cut above a pair of leaves, so that it branches.

<!-- <serp_queries>
[\"basil indoors hours of light\",\"how often to water basil in a pot\"]
</serp_queries> -->
</final>
"),
    rules: Cow::Borrowed("
Rules:
- Answer the request you are given. Take over the form of the example, never its words.
- The order is <serp> (may be left out), <thinking>, <final>. Only white space stands between them. No code fence around
  the reply.
- These are the only tags. Every tag is closed, written in lower case and without attributes, except <phase id=\"N\">.
- <serp> holds one or two plain sentences that say what the user wants.
- <thinking> holds phases, two or more if you can, with the ids 1, 2, 3 and so on. Each begins with one <title> that is
  not empty; plain text follows.
- <final> holds the answer in Markdown. Any other < that would begin a tag is written &lt; and its > is written &gt;, in
  code too. In code the entities &lt; &gt; &amp; &quot; &apos; are shown as the characters they stand for.
- {block} the opening line, one JSON array, the closing
  line. The array has one to three search queries, five at most, all different, at most 80 characters each, without
  names, addresses, numbers or other personal data. Without a need to search it is [].
- If you cannot reply in this form, reply only with <<ParsingError>>.
"),
    turn: Some(ExampleTurn::new(
        "Write every reply in tags: <serp>, <thinking> with phases, <final>; nothing before or after it.",
        "How do I keep basil alive indoors?",
    )),
};

const ZH: FormatInstructions = FormatInstructions {
    opening: Cow::Borrowed("\
整个回复必须采用下面示例的格式，前后不要有任何其他内容。

示例请求：
室内养的罗勒怎样才不会死？

示例回复：
"),
    example: Cow::Borrowed("\
<serp>用户想知道如何在室内养活罗勒。</serp>
<thinking>
<phase id=\"1\">
<title>找出常见原因</title>
厨房里的罗勒多半死于光照不足或根部积水。
</phase>
<phase id=\"2\">
<title>规划回答</title>
先讲光照，再讲浇水，最后讲采摘；步骤简短，带上数字。
</phase>
</thinking>
<final>
## 室内养罗勒

1. **光照**：每天至少六小时，最好放在朝南的窗边。
2. **浇水**：表土干了再浇，倒掉托盘里的积水。
3. **采摘**：在一对叶子的上方剪，植株才会分枝。

<!-- <serp_queries>
[\"罗勒室内光照时长\",\"盆栽罗勒多久浇一次水\"]
</serp_queries> -->
</final>
"),
    rules: Cow::Borrowed("
规则：
- 回答实际的请求。只沿用示例的格式，不要照抄示例的文字。
- 顺序为 <serp>（可省略）、<thinking>、<final>，三者之间只能有空白。不要用代码围栏包住回复。
- 只能使用这些标签。标签一律小写、必须闭合、不带属性，唯一的例外是 <phase id=\"N\">。
- <serp> 用一两句纯文本说明用户想要什么。
- <thinking> 由若干 phase 组成，最好两个以上，id 依次为 1、2、3……每个 phase 先写一个非空的 <title>，后面是纯文本。
- <final> 里是 Markdown 格式的回答。其他会被当作标签开头的 < 写成 &lt;，与它配对的 > 写成 &gt;，代码里也一样。
  代码里的 &lt; &gt; &amp; &quot; &apos; 会显示为它们所代表的字符。
- {block}开始行、一个 JSON 数组、结束行。数组里放一到三个搜索查询，最多五个，互不重复，每个不超过
  80 个字符，不含姓名、地址、号码等个人信息。不需要搜索时写 []。
- 如果无法按此格式回复，就只输出 <<ParsingError>>。
"),
    turn: Some(ExampleTurn::new(
        "每个回复都写在标签里：<serp>、由若干 phase 组成的 <thinking>、<final>，前后不要有任何其他内容。",
        "室内养的罗勒怎样才不会死？",
    )),
};
