//! Format instructions for a system prompt. The example comes first, because small models follow an example
//! better than rules; it has no placeholders, because small models copy them.

use std::borrow::Cow;

use serde_json::Value;

use crate::dialect::FormatInstructions;
use crate::options::{Language, Options};

/// Returns the instructions with the configured role key.
pub(super) fn prompt(options: &Options) -> FormatInstructions {
    let mut prompt = match options.texts.language {
        Language::Zh => ZH,
        Language::En => EN,
    };
    let (role, default_role) = (super::role(options), super::default_role(options));
    if role != default_role {
        let quote_role = |role: &str| Value::from(role).to_string();
        for text in [&mut prompt.example, &mut prompt.rules] {
            *text = Cow::Owned(text.replace(&quote_role(default_role), &quote_role(&role)));
        }
    }
    prompt
}

const EN: FormatInstructions = FormatInstructions {
    opening: Cow::Borrowed("\
Write your whole reply as one JSON object in the form of this example, and nothing before or after it.

Example: the topic is how compost works, and the user says: Ah, so the worms need air. But why must I not add meat?

Example reply:
"),
    example: Cow::Borrowed(r###"{
  "assessment": {
    "understanding_level": 55,
    "has_questions": true,
    "expressed_understanding": false,
    "reasoning": "They see why air matters but ask about meat, so one part is open."
  },
  "response": {
    "counsellor": "Right, worms breathe through their skin. Meat rots without air, it smells and draws rats; leaves and peel do not."
  },
  "should_exit": false,
  "exit_reason": "A question is open."
}
"###),
    rules: Cow::Borrowed("
Rules:
- Answer what the user really said. Take over the form of the example, never its words or numbers.
- understanding_level is a number from 0 to 100: how well the user has understood, judged by their last message.
- has_questions, expressed_understanding and should_exit are true or false, without quotes. has_questions: the user has
  open questions. expressed_understanding: the user said that they understand.
- reasoning says in a sentence how you judged; the user never sees it.
- The one key in response is \"counsellor\"; its text is your message to the user, in their language.
- should_exit says whether the topic can end, exit_reason why.
- All fields must be there. No code fence, no comments; a line break in a text is written \\n, a quote \\\".
- If you cannot reply in this form, reply only with <<ParsingError>>.
"),
    turn: None,
};

const ZH: FormatInstructions = FormatInstructions {
    opening: Cow::Borrowed("\
整个回复必须是下面示例那样的一个 JSON 对象，前后不要有任何其他内容。

示例：讲解的主题是堆肥的原理，用户说：哦，原来蚯蚓需要空气。可是为什么不能放肉呢？

示例回复：
"),
    example: Cow::Borrowed(r###"{
  "assessment": {
    "understanding_level": 55,
    "has_questions": true,
    "expressed_understanding": false,
    "reasoning": "用户明白了空气的作用，但又问到肉类，还有一处没弄清。"
  },
  "response": {
    "咨询师": "对，蚯蚓靠皮肤呼吸。肉在缺少空气时会腐烂发臭，还会招来老鼠；落叶和果皮就不会。"
  },
  "should_exit": false,
  "exit_reason": "用户还有一个问题。"
}
"###),
    rules: Cow::Borrowed("
规则：
- 回应用户实际说的话。只沿用示例的格式，不要照抄示例的文字和数字。
- understanding_level 是 0 到 100 之间的数字，根据用户最近的话判断理解的程度。
- has_questions、expressed_understanding、should_exit 只写 true 或 false，不加引号。has_questions 表示用户是否还有疑问，
  expressed_understanding 表示用户是否明确说自己懂了。
- reasoning 用一句话说明判断的依据，用户看不到。
- response 里只有 \"咨询师\" 这一个键，它的内容就是你对用户说的话。
- should_exit 表示这个主题是否可以结束，exit_reason 说明理由。
- 所有字段都要有。不要用代码围栏，不要写注释；文本里的换行写成 \\n，引号写成 \\\"。
- 如果无法按此格式回复，就只输出 <<ParsingError>>。
"),
    turn: None,
};
