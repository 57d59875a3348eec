import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type Page, type Request } from "playwright-core";
import { assertAccessible, assertFits, withPage } from "./support/browser.ts";
import { openStage } from "./support/stage.ts";

const ASSETS = join(import.meta.dirname, "../dist/assets");
const hasDecoder = existsSync(ASSETS) && readdirSync(ASSETS).some((name) => name.endsWith(".wasm"));
const skip = hasDecoder ? false : "the studio was built before the package for JavaScript";

const { browser, studio } = await openStage();

const BROKEN = `<thinking>
<phase id="1">
<title>目标 🙂</title>
More depth.
</phase>
<phase id="1">
<title>Plan</title>
Three steps.
</phase>
</thinking>
<final>
Warm up **first**.
</final>
`;

const TEXTS = [
  BROKEN,
  BROKEN.slice(0, 90),
  '```json\n{"thought":"A document.","response_mode":"TOOL_EXECUTION","direct_response":null,"tool_calls":[{"name":"createComprehensiveSRS","args":{"userInput":"A shop",}}]}\n```',
  '{"assessment": {"understanding_level": 140}, "response": {"counsellor": "Well put."}, "should_exit": "yes"',
  "<content>\nYou *slip* away. <script>alert(1)</script>\n</content>\n<status_bar>\n<mood>tense</mood>\n",
  "<think>\nHm.\n</think>\nIt is **4**.",
  '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris",}}\n</tool_call>',
  "event: thinking_start\ndata: {}\n\nevent: final_delta\ndata: {\"text\":\"x\"}\n\nevent: final_end\ndata: {}\n\n",
];

const field = (page: Page) => page.getByRole("textbox", { name: /^(Reply, transcript or JSONL|回复、流记录或 JSONL)$/ });
const isReading = (request: Request) => /\/api\/v1\/(?:check|decode)$/.test(request.url());

/** Opens the inspector, and waits until it reads while one types. */
async function openInspector(page: Page): Promise<void> {
  const settings = page.waitForResponse((response) => response.url().endsWith("/api/v1/settings"));
  const module = page.waitForResponse((response) => response.url().endsWith(".wasm"));
  await page.goto("/inspect");
  await Promise.all([settings, module]);
}

/** Content of the inspector: verdict, findings, events, and the repaired reply. */
async function shownOf(page: Page): Promise<string[]> {
  const shown = [await page.getByRole("status").filter({ hasText: /Passes|Fails/ }).innerText()];
  for (const part of [/^Findings \d/, /^Events \d/, /^As shown$/, /^Before and after$/]) {
    const choice = page.getByText(part);
    if ((await choice.count()) === 0) continue;
    await choice.click();
    shown.push(await page.locator("main").innerText());
  }
  await page.getByText(/^Findings \d/).click();
  return shown;
}

for (const language of ["en", "zh"] as const) {
  test(`a reply is read while it is typed, without a request (${language})`, { skip }, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await openInspector(page);
      const requests: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      await field(page).pressSequentially("<thinking>\n<phase>\n");
      await page.getByRole("button", { name: "structure_late", exact: true }).first().waitFor();
      await field(page).fill(BROKEN);
      await page.getByRole("button", { name: "phase_id_not_increasing", exact: true }).click();
      await page.getByRole("list", { name: /^(Raw text|原始文本)$/ }).getByRole("button", { name: /phase_id_not_increasing/ }).waitFor();
      // The chosen part stays while the text changes, and the field keeps the focus.
      await page.getByText(/^(Events|事件) \d/).click();
      await field(page).focus();
      await page.keyboard.press("ControlOrMeta+End");
      await page.keyboard.insertText("<final>\nMore.\n</final>\n");
      await page.getByText(/^(Findings|检查结果) 3$/).waitFor();
      await page.getByRole("option", { name: /final_end/ }).first().waitFor();
      assert.equal(await field(page).evaluate((one) => one === document.activeElement), true);
      await page.getByRole("button", { name: /^(Clear|清空)$/ }).click();
      await page.getByText(/^(Nothing to look into yet|还没有可检查的内容)$/).waitFor();
      await assertAccessible(page);
      await assertFits(page);
      assert.deepEqual(requests, []);
    });
  });
}

test("the browser and the server read the same", { skip }, async () => {
  await withPage(browser, studio, { allow: [/Failed to load resource/] }, async (page) => {
    await openInspector(page);
    const readings: string[][] = [];
    page.on("request", (request) => assert.ok(!isReading(request), "the browser asks the server"));
    for (const text of TEXTS) {
      await field(page).fill(text);
      await page.getByRole("button", { name: "Check", exact: true }).click();
      readings.push(await shownOf(page));
    }
    page.removeAllListeners("request");
    await page.route("**/*.wasm", (route) => route.abort());
    await page.goto("/inspect");
    for (const [at, text] of TEXTS.entries()) {
      await field(page).fill(text);
      const read = page.waitForRequest(isReading);
      await page.getByRole("button", { name: "Check", exact: true }).click();
      await read;
      await page.getByRole("list", { name: "Raw text" }).waitFor();
      assert.deepEqual(await shownOf(page), readings[at], text);
    }
  });
});

describe("the server reads", () => {
  test("where the module does not load, when it is asked to", async () => {
    await withPage(browser, studio, { allow: [/Failed to load resource/] }, async (page) => {
      await page.route("**/*.wasm", (route) => route.abort());
      await page.goto("/inspect");
      await field(page).fill(BROKEN);
      const read = page.waitForRequest(isReading);
      await page.getByRole("button", { name: "Check", exact: true }).click();
      await read;
      await page.getByRole("button", { name: "phase_id_not_increasing", exact: true }).waitFor();
    });
  });

  test("where its operator wrote own texts, which the browser does not know", async () => {
    const { texts } = (await studio.request("GET", "/api/v1/settings")) as { texts: object };
    await studio.request("PUT", "/api/v1/settings", { texts: { phase_title: "Deep thought" } });
    try {
      await withPage(browser, studio, {}, async (page) => {
        await page.goto("/inspect");
        await field(page).fill("It is 4.");
        const read = page.waitForRequest(isReading);
        await page.getByRole("button", { name: "Check", exact: true }).click();
        await read;
        await page.getByText(/^Events \d/).click();
        await page.getByText("Deep thought").waitFor();
      });
    } finally {
      await studio.request("PUT", "/api/v1/settings", { texts });
    }
  });
});
