import { type Studio } from "../support/server.ts";

/** Script of two steps, one with an action whose condition is false. */
export const SCRIPT = `sessions:
  - session: ABC
    declare:
      - {var: 用户名, value: 小明}
      - {var: 心情, value: 平静}
    phases:
      - phase: 介绍
        steps:
          - topic: 三个部分
            actions:
              - {type: ai_say, content: "向{用户名}讲解ABC", max_rounds: 5, require_acknowledgment: false}
              - {type: ai_say, action_id: comfort, content: 安慰, condition: "心情 == '难过'", max_rounds: 2}
          - topic: 练习
            actions:
              - {type: ai_say, action_id: practice, content: "练习：{用户名}", max_rounds: 5, require_acknowledgment: false}
`;

export async function storeScript(studio: Studio, yaml = SCRIPT, name = "ABC 模型"): Promise<string> {
  const response = (await studio.request("POST", "/api/v1/scripts", { name, yaml })) as { script_id: string };
  return response.script_id;
}

export async function beginDialogue(studio: Studio, script: string, more: object = {}): Promise<string> {
  const response = (await studio.request("POST", "/api/v1/dialogues", { script_id: script, ...more })) as { dialogue_id: string };
  return response.dialogue_id;
}

export async function say(studio: Studio, dialogue: string, text?: string): Promise<void> {
  await studio.request("POST", `/api/v1/dialogues/${dialogue}/input`, text === undefined ? {} : { text });
}
