import { type Page } from "playwright-core";
import { type Studio } from "./server.ts";

export const FIRST_ACTION = "sessions[0].phases[0].steps[0].actions[0]";

export type ScriptVersion = { yaml: string; version: number; latest: number; published: number | null };

export async function makeScript(studio: Studio, yaml: string, name = "ABC", draft = false): Promise<string> {
  const response = (await studio.request("POST", `/api/v1/scripts?draft=${String(draft)}`, { name, yaml })) as { script_id: string };
  return response.script_id;
}

/** Last version of a script. */
export async function storedScript(studio: Studio, id: string): Promise<ScriptVersion> {
  const { latest } = (await studio.request("GET", `/api/v1/scripts/${id}`)) as ScriptVersion;
  return (await studio.request("GET", `/api/v1/scripts/${id}?version=${latest}`)) as ScriptVersion;
}

export const openScript = (page: Page, id: string, node: string = FIRST_ACTION) =>
  page.goto(`/scripts/${id}?node=${encodeURIComponent(node)}`);

/** Waits until the page reports that this version is saved. */
export async function waitForVersion(page: Page, version: number, word = "Draft"): Promise<void> {
  await page.getByText(`${word} v${version}`).waitFor();
  await page.getByRole("status").filter({ hasText: /^\s*(Saved|已保存)/ }).waitFor();
}

/** Script with the actions of its first step, and a second one without any. */
export const scriptOf = (actions: string) =>
  `# a script\nsessions:\n  - session: s\n    phases:\n      - phase: p # the phase\n        steps:\n          - topic: one\n            actions:\n${actions}          - topic: two # stays with it\n            actions: []\n`;

export const SAY = "              - type: ai_say # explains\n                content: Hello\n";
