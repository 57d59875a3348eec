// Replies to try, each with the settings that differ from those of the page.

const THINKING_BROKEN = `<thinking>
<phase id="1">
<title>Assess your squat</title>
Film yourself from the side.
<phase id="1">
<title>Widen your stance</title>
Turn your toes out a little.
</thinking>
<final>
Sit **between** your hips, not behind them.
</final>
`;

const THINKING_CORRECT = `<thinking>
<phase id="1">
<title>Understand the question</title>
The user wants a warm-up for squats.
</phase>
<phase id="2">
<title>Pick the exercises</title>
Two minutes of hip circles, then light sets.
</phase>
</thinking>
<final>
Begin with hip circles, then two light sets of eight.
<!-- <serp_queries>
["squat warm-up", "hip mobility exercises"]
</serp_queries> -->
</final>
`;

const SEQUENCE_BROKEN = `Here is my answer:
{"event": "thinking_start", "data": {}}
{"event": "phase_start", "data": {"id": 1, "title": "Greeting"}}
{"event": "phase_delta", "data": {"id": 2, "text": "Only a greeting."}}
{"event": "thinking_end", "data": {}}
{"event": "final_delta", "data": {"text": "Hello! What shall we train today?"}
{"event": "final_end", "data": {}}
`;

const SEQUENCE_CORRECT = `{"event": "thinking_start", "data": {}}
{"event": "phase_start", "data": {"id": 1, "title": "识别意图"}}
{"event": "phase_delta", "data": {"id": 1, "text": "用户只是打招呼。"}}
{"event": "phase_start", "data": {"id": 2, "title": "组织回答"}}
{"event": "phase_delta", "data": {"id": 2, "text": "简短地问候，再问需求。"}}
{"event": "thinking_end", "data": {}}
{"event": "final_delta", "data": {"text": "你好！今天想练什么，还是想聊聊饮食？"}}
{"event": "final_end", "data": {}}
`;

const PLAN_BROKEN = `Sure, let me do that.
\`\`\`json
{
  'thought': 'The user wants a document.',
  "response_mode": "tool_execution",
  "direct_response": null,
  "tool_calls": [
    {"name": "createComprehensiveSRS", "args": {"userInput": "A shop for tea", "projectName": "Tea"}},
  ]
}
\`\`\`
`;

const PLAN_CORRECT = `\`\`\`json
{
  "thought": "A question about a concept.",
  "response_mode": "KNOWLEDGE_QA",
  "direct_response": "A functional requirement says what a system does; the others say how well.",
  "tool_calls": []
}
\`\`\`
`;

const FILAMENT_BROKEN = `<thought>
The purse is guarded, but the guard yawns.
</thought>
<content>
You *slip* between the stalls. <script>alert(1)</script>
</content>
<variable_update>
  <analysis>The purse holds gold.</analysis>
  [["ADD", "gold", 10], ["PUSH", "inventory", 'rusty key'],]
</variable_update>
<status_bar>
  <mood>tense</mood>
  <location>market</location>
</status_bar>
<choice>
  <prompt>What next?</prompt>
  <options>
    <option id="run">Run for the gate</option>
    <option id="run">Hide under a cart</option>
  </options>
</choice>
`;

const SAY_BROKEN = `{
  "assessment": {"understanding_level": 140, "has_questions": "no", "expressed_understanding": true, "reasoning": "Names all three parts."},
  "response": {"counsellor": "Well put. Shall we look at an example of your own?"},
  "should_exit": true,
  "exit_reason": "understood"
`;

const CALL_BROKEN = `I will look that up.
<tool_call>
{"name": "weather", "arguments": {"city": "Paris", "days": 3,}}
</tool_call>
`;

const VALUE_BROKEN = `Of course! Here is the record:

\`\`\`json
{'name': 'Ada Lovelace', "born": 1815, tags: ["mathematics", "engines",], "alive": False}
\`\`\`

Tell me if you need more.
`;

const PLAIN_CORRECT = `<think>
Two and two are four.
</think>
It is **4**.
`;

const CUT = `<thinking>
<phase id="1">
<title>Plan the week</title>
Three sessions, with a day between them.
</phase>
<phase id="2">
<title>Write it down</title>
Monday, Wedne`;

const WEATHER = JSON.stringify(
  {
    weather: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
    },
  },
  null,
  2,
);

/** Examples by group; `name` is the same in all languages where it names a dialect. */
export const EXAMPLES = [
  { id: "thinkingml", group: "broken", name: { en: "thinkingml: phases", zh: "thinkingml：阶段" }, text: THINKING_BROKEN },
  { id: "cut", group: "broken", name: { en: "thinkingml: cut off", zh: "thinkingml：被截断" }, text: CUT, finish: "length" },
  { id: "jsonseq", group: "broken", name: { en: "jsonseq: a lost brace", zh: "jsonseq：缺少括号" }, text: SEQUENCE_BROKEN },
  { id: "aiplan", group: "broken", name: { en: "aiplan: quotes and commas", zh: "aiplan：引号与逗号" }, text: PLAN_BROKEN },
  { id: "filament", group: "broken", name: { en: "filament: a scene", zh: "filament：一幕" }, text: FILAMENT_BROKEN },
  { id: "ai_say", group: "broken", name: { en: "ai_say: wrong values", zh: "ai_say：错误的值" }, text: SAY_BROKEN },
  {
    id: "toolcall",
    group: "broken",
    name: { en: "toolcall: a call", zh: "toolcall：一次调用" },
    text: CALL_BROKEN,
    dialect: "toolcall",
    tools: WEATHER,
  },
  {
    id: "json_value",
    group: "broken",
    name: { en: "json_value: chatty JSON", zh: "json_value：夹带闲话的 JSON" },
    text: VALUE_BROKEN,
    dialect: "json_value",
  },
  { id: "thinkingml-correct", group: "correct", name: { en: "thinkingml", zh: "thinkingml" }, text: THINKING_CORRECT },
  { id: "jsonseq-correct", group: "correct", name: { en: "jsonseq (Chinese)", zh: "jsonseq（中文）" }, text: SEQUENCE_CORRECT },
  { id: "aiplan-correct", group: "correct", name: { en: "aiplan: a question", zh: "aiplan：问答" }, text: PLAN_CORRECT },
  { id: "plain-correct", group: "correct", name: { en: "plain: with reasoning", zh: "plain：带推理" }, text: PLAIN_CORRECT },
];
