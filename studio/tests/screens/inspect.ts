import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Page } from "playwright-core";
import { type Screen } from "../support/screens.ts";

const RECORDED = join(import.meta.dirname, "../../../fixtures/recorded/thinkingml.jsonl");

async function openExample(page: Page): Promise<void> {
  await page.getByRole("button", { name: /broken example|有错误的例子/ }).click();
  await page.getByText(/^(Fails|未通过)$/).waitFor();
}

async function openFile(page: Page): Promise<void> {
  await page.locator("input[type=file]").setInputFiles({ name: "thinkingml.jsonl", mimeType: "application/jsonl", buffer: readFileSync(RECORDED) });
  await page.getByText(/49 of 49|49 \/ 49/).waitFor();
  await page.getByRole("button", { name: /Check the 49 shown|检查显示的 49 条/ }).click();
  await page.getByText(/^(Not checked|未检查) \d+$/).waitFor({ state: "hidden" });
  await page.getByRole("option").nth(1).click();
  await page.getByRole("region", { name: /Record 2|第 2 条记录/ }).getByText(/\d (errors?|个错误)/).waitFor();
}

const choose = (name: RegExp) => async (page: Page) => {
  await openExample(page);
  await page.getByText(name).click();
};

export const screens: Screen[] = [
  { name: "inspect", path: "/inspect" },
  { name: "inspect-reply", path: "/inspect", act: openExample },
  { name: "inspect-comparison", path: "/inspect", act: choose(/^(Before and after|修复前后)$/) },
  { name: "inspect-verdicts", path: "/inspect", act: choose(/^(By rule|按规则)$/) },
  { name: "inspect-file", path: "/inspect", act: openFile },
  { name: "inspect-rules", path: "/inspect/rules" },
  { name: "inspect-rule", path: "/inspect/rules/final_missing" },
];
