import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Page } from "playwright-core";
import { type Screen } from "../support/screens.ts";
import { type Studio } from "../support/server.ts";

const example = (name: string) => readFileSync(join(import.meta.dirname, `../../../examples/${name}/script.yaml`), "utf8");

async function make(studio: Studio, name: string, file: string): Promise<string> {
  const { data } = (await studio.request("GET", "/api/v1/scripts?limit=200")) as { data: { name: string; script_id: string }[] };
  const there = data.find((one) => one.name === name);
  if (there !== undefined) return there.script_id;
  const response = await studio.request("POST", "/api/v1/scripts", { name, yaml: example(file) });
  return (response as { script_id: string }).script_id;
}

let merges = 0;
const ACTION = "sessions[0].phases[0].steps[0].actions[0]";

const at = (name: string, file: string, node: string) => async (studio: Studio) =>
  `/scripts/${await make(studio, name, file)}?node=${encodeURIComponent(node)}`;

/** Shows the form on a narrow screen, which shows one part at a time. */
async function showForm(page: Page): Promise<void> {
  const form = page.locator(".ant-segmented-item").filter({ hasText: /^(?:属性|Properties)$/ });
  if (await form.isVisible()) await form.click();
}

export const screens: Screen[] = [
  { name: "scripts-none", path: "/scripts" },
  {
    name: "scripts",
    path: async (studio) => {
      await make(studio, "ABC模型介绍", "abc-model");
      await make(studio, "Requirements interview", "requirements-interview");
      const id = await make(studio, "Fitness coach", "fitness-coach");
      await studio.request("PUT", `/api/v1/scripts/${id}?draft=true`, { yaml: `${example("fitness-coach")}# draft\n` });
      return "/scripts";
    },
    act: async (page) => page.getByRole("link", { name: "ABC模型介绍" }).waitFor(),
  },
  {
    name: "scripts-say",
    path: at("ABC模型介绍", "abc-model", ACTION),
    act: async (page) => {
      await page.locator(".cm-content").waitFor({ state: "attached" });
      await showForm(page);
      await page.locator("textarea").waitFor();
    },
  },
  {
    name: "scripts-tree",
    path: at("Fitness coach", "fitness-coach", "sessions[0]"),
    act: async (page) => page.getByRole("tree").waitFor(),
  },
  {
    name: "scripts-english",
    path: at("Requirements interview", "requirements-interview", "sessions[0].phases[1].steps[0].actions[1]"),
    act: async (page) => {
      await page.locator(".cm-content").waitFor({ state: "attached" });
      await page.getByRole("treeitem").nth(3).waitFor({ state: "attached" });
    },
  },
  {
    name: "scripts-merge",
    path: "/scripts",
    // Another tab saves while this one is edited.
    act: async (page, studio) => {
      merges += 1;
      await page.goto(await at(`ABC模型介绍 ${merges}`, "abc-model", ACTION)(studio));
      await page.locator(".cm-content").waitFor({ state: "attached" });
      await showForm(page);
      const content = page.getByLabel(/^(?:讲解内容|Content)$/);
      await content.waitFor();
      const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      const theirs = example("abc-model").replace("max_rounds: 5", "max_rounds: 8").replace("情绪", "情绪和行为");
      await studio.request("PUT", `/api/v1/scripts/${id}?draft=true`, { yaml: theirs });
      await content.fill((await content.inputValue()).replace("情绪", "感受"));
      await page.getByRole("radiogroup", { name: /^(?:Difference|差异) 1$/ }).waitFor();
    },
    allow: [/status of 412/],
  },
  {
    name: "scripts-invalid",
    path: "/scripts",
    // One form waits to become valid, and the part of another one is gone.
    act: async (page, studio) => {
      const { script_id: id } = (await studio.request("POST", "/api/v1/scripts", { name: "Coach", yaml: example("fitness-coach") })) as { script_id: string };
      for (const action of [0, 1]) {
        await page.goto(`/scripts/${id}?node=${encodeURIComponent(`sessions[0].phases[0].steps[0].actions[${action}]`)}`);
        await page.locator(".cm-content").waitFor({ state: "attached" });
        await showForm(page);
        await page.getByLabel(/^(?:最大交互轮数|Maximum rounds)$/).fill("21");
        await page.getByLabel(/^(?:问题|Question)$/).fill("你想达到什么目标，为什么？");
        await page.getByText(/(?:表单无效，未保存|The form is not valid)/).waitFor();
      }
      const tree = page.locator(".ant-segmented-item").filter({ hasText: /^(?:结构|Structure)$/ });
      if (await tree.isVisible()) await tree.click();
      await page.getByRole("button", { name: /^(?:删除|Delete)$/ }).click();
      await page.getByText(/(?:已不在脚本中|is not in the script any more)/).waitFor();
    },
  },
  {
    name: "scripts-gone",
    path: "/scripts",
    act: async (page, studio) => {
      const { script_id: id } = (await studio.request("POST", "/api/v1/scripts", { name: "Interview", yaml: example("requirements-interview") })) as { script_id: string };
      await page.goto(`/scripts/${id}?node=${encodeURIComponent(ACTION)}`);
      await page.locator(".cm-content").waitFor({ state: "attached" });
      await showForm(page);
      await studio.request("DELETE", `/api/v1/scripts/${id}`);
      await page.getByLabel(/^(?:问题|Question)$/).fill("What for?");
      await page.getByText(/(?:已被他人删除|has deleted this script)/).waitFor();
    },
    allow: [/status of 404/],
  },
];
