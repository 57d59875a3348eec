import assert from "node:assert/strict";
import { test } from "node:test";
import { type Page } from "playwright-core";
import { assertAccessible, assertFits, waitForPage, withPage } from "./support/browser.ts";
import { makeQuest, PAYLOAD, QUEST, regenerate, stateOf } from "./support/quest.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage({ replay: QUEST });

/** Opens a list and chooses an option. */
async function choose(page: Page, label: string, option: string | RegExp): Promise<void> {
  await page.getByRole("combobox", { name: label }).click();
  await page.locator(".ant-select-dropdown:visible").getByTitle(option).first().click();
}

const hacked = (page: Page): Promise<unknown> => page.evaluate(() => (window as { hacked?: unknown }).hacked);

/** Names of a rollback, by language; the second one is narrow. */
const ROLLBACK = {
  en: {
    width: 1280, updates: "Updates of the state", refused: "Refused: there is nothing at `nothing`", to: "Roll back to here",
    later: "2 later updates are taken back", change: /gold Changed.*7.*→.*10/, go: "Roll back", done: "2 updates taken back",
  },
  zh: {
    width: 390, updates: "状态更新", refused: "被拒绝：there is nothing at `nothing`", to: "回退到此处",
    later: "此后的 2 次状态更新将被撤回", change: /gold 更改.*7.*→.*10/, go: "回退", done: "已撤回 2 次更新",
  },
} as const;

for (const language of ["en", "zh"] as const) {
  const names = ROLLBACK[language];

  test(`a state is rolled back, after what changes was shown (${language})`, async () => {
    const { id, messages } = await makeQuest(studio);
    assert.deepEqual(await stateOf(studio, id), {
      gold: 7,
      inventory: ["lamp"],
      hero: { name: "<img src=x onerror='window.hacked=5'>" },
      location: "old well",
    });
    await withPage(browser, studio, { language, width: names.width }, async (page) => {
      await page.goto(`/conversations/${id}?tab=history`);
      const history = page.getByRole("list", { name: names.updates });
      const first = history.getByRole("listitem").filter({ hasText: "found gold" }).first();
      await first.getByText(names.refused).waitFor();
      await first.getByRole("button", { name: names.to }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(names.later).waitFor();
      const gold = dialog.getByRole("listitem").filter({ hasText: "gold" }).first();
      assert.match((await gold.innerText()).replace(/\s+/g, " "), names.change);
      await assertAccessible(page);
      await dialog.getByRole("button", { name: names.go }).click();
      await page.getByText(names.done).waitFor();
      assert.deepEqual(await stateOf(studio, id), {
        gold: 10,
        inventory: ["key"],
        hero: { name: "<img src=x onerror='window.hacked=5'>" },
      });
      await history.getByText("bought a lamp").waitFor({ state: "hidden" });
      assert.equal(await hacked(page), undefined);
    });
    assert.equal(messages.length, 3);
  });
}

test("two moments are compared, both ways, and by their address", async () => {
  const { id, messages } = await makeQuest(studio);
  await withPage(browser, studio, { language: "zh" }, async (page) => {
    await page.goto(`/conversations/${id}?tab=compare&from=${messages[0] ?? ""}&to=${messages[1] ?? ""}`);
    await page.getByText("2 处差异").waitFor();
    const differences = page.getByRole("list", { name: "差异" });
    assert.match((await differences.innerText()).replace(/\s+/g, " "), /gold 更改 .*10 → .*7/);
    await page.getByRole("button", { name: "交换" }).click();
    await differences.getByText("7").first().waitFor();
    await page.waitForURL((url) => url.searchParams.get("from") === messages[1]);
    await page.waitForFunction(() => /7[^→]*→[^→]*10/.test(document.querySelector("[aria-label='差异']")?.textContent ?? ""));
    await choose(page, "从", "初始状态");
    await choose(page, "到", "当前");
    await page.getByText("4 处差异").waitFor();
    await assertAccessible(page);
    await assertFits(page);
  });
});

test("conversations are searched, and deleted when that was confirmed", async () => {
  for (let index = 0; index < 60; index += 1) {
    await studio.request("POST", "/api/v1/conversations", { title: `Talk ${index} of many` });
  }
  await makeQuest(studio, "The needle");
  const { id } = await makeQuest(studio, `Payload ${PAYLOAD}`);
  for (let index = 60; index < 120; index += 1) {
    await studio.request("POST", "/api/v1/conversations", { title: `Talk ${index} of many` });
  }
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/conversations");
    const list = page.getByRole("list", { name: "Conversations" });
    await list.getByText("Talk 119 of many").waitFor();
    // The search goes beyond the first page of the listing.
    await page.getByRole("searchbox", { name: "Search titles, ids and messages" }).fill("needle");
    await list.getByRole("link", { name: "The needle" }).waitFor();
    await page.getByText("1 conversation", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Delete The needle" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Delete The needle" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("Nothing matches").waitFor();
    await page.getByRole("button", { name: "Clear the search" }).click();
    await list.getByText("Talk 119 of many").waitFor();
    await page.getByRole("searchbox", { name: "Search titles, ids and messages" }).fill(id);
    await list.getByText("onerror").first().waitFor();
    assert.equal(await hacked(page), undefined);
    await assertAccessible(page);
  });
});

test("a change by hand is taken back alone, behind more updates than one page of the listing has", async () => {
  const made = await studio.request("POST", "/api/v1/conversations", { title: "Many updates" });
  const { conversation_id: id } = made as { conversation_id: string };
  for (let index = 1; index <= 230; index += 1) {
    await studio.request("POST", `/api/v1/conversations/${id}/state/operations`, { operations: [["SET", "count", index]] });
  }
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/conversations/${id}?tab=state`);
    await page.getByLabel("Path", { exact: true }).fill("mine");
    await page.getByLabel("Value", { exact: true }).fill("7");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("1 update taken back").waitFor();
    assert.deepEqual(await stateOf(studio, id), { count: 230 });
    await page.goto(`/conversations/${id}?tab=history`);
    await page.getByText("229").first().waitFor();
  });
});

for (const language of ["en", "zh"] as const) {
  test(`payloads in a title, a reply and a state do not run (${language})`, async () => {
    const { id } = await makeQuest(studio, `Payload ${PAYLOAD}`);
    const operations = [["SET", 'names["<script>window.hacked=6</script>"]', PAYLOAD]];
    await studio.request("POST", `/api/v1/conversations/${id}/state/operations`, { operations, analysis: PAYLOAD });
    await withPage(browser, studio, { language, width: 390 }, async (page) => {
      for (const tab of ["messages", "state", "history", "compare", "schema"]) {
        await page.goto(`/conversations/${id}?tab=${tab}`);
        await waitForPage(page);
        if (tab !== "schema") await page.getByText(/onerror|ten gold/).first().waitFor();
        assert.equal(await hacked(page), undefined, tab);
        assert.equal(await page.locator("main img, main script").count(), 0, tab);
        assert.equal(await page.locator("main a[href^='javascript' i]").count(), 0, tab);
        await assertFits(page);
        await assertAccessible(page);
      }
    });
  });
}

test("operations by hand are applied, refused with a toast, and undone", async () => {
  const { id } = await makeQuest(studio);
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/conversations/${id}?tab=state`);
    await page.getByRole("button", { name: "Copy the path inventory[0]" }).waitFor();
    await page.getByRole("textbox", { name: "Path" }).fill("gold");
    await page.getByRole("textbox", { name: "Value" }).fill("99");
    await page.getByText("JSON", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Add an operation" }).click();
    const second = page.getByRole("group", { name: "Operation 2" });
    await second.getByRole("textbox", { name: "Path" }).fill("no.such[3]");
    await second.getByRole("textbox", { name: "Value" }).fill("old");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("Part of the state update failed").waitFor();
    await page.getByText("1 operation applied · 1 operation was refused").waitFor();
    assert.equal(((await stateOf(studio, id)) as { gold: number }).gold, 99);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("1 update taken back").waitFor();
    assert.equal(((await stateOf(studio, id)) as { gold: number }).gold, 7);
    await page.getByRole("searchbox", { name: "Search names, paths and values" }).fill("old well");
    await page.getByRole("list", { name: "State" }).getByText("location").waitFor();
    assert.equal(await page.getByRole("list", { name: "State" }).getByRole("listitem").count(), 1);
  });
});

test("a reply is regenerated, and its versions are read", async () => {
  const { id, messages } = await makeQuest(studio);
  await regenerate(studio, messages[1] ?? "");
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/conversations/${id}`);
    await page.getByText("Version 2 of 2").waitFor();
    await page.getByRole("button", { name: "Previous version" }).click();
    await page.getByText("Kept for reading").waitFor();
    await page.getByText("1 message came after this version").waitFor();
    await page.getByRole("button", { name: "Next version" }).click();
    await page.getByText("Kept for reading").waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Regenerate" }).last().click();
    await page.getByText("Version 3 of 3").waitFor();
    await page.getByText("Part of the state update failed").first().waitFor();
    await assertAccessible(page);
    // A link to an earlier version shows that version.
    await page.goto(`/conversations/${id}?message=${messages[1] ?? ""}`);
    await page.getByText("Version 1 of 3").waitFor();
  });
});

test("an action that is refused is told in the language of the page", async () => {
  const { id } = await makeQuest(studio);
  const refusal = { code: "state_gone", detail: "the state before it is gone" };
  await withPage(browser, studio, { language: "zh", width: 390, allow: [/status of 409/] }, async (page) => {
    await page.route("**/regenerate", (route) => route.fulfill({ status: 409, json: refusal }));
    await page.goto(`/conversations/${id}`);
    await page.getByRole("button", { name: "重新生成" }).last().click();
    await page.getByText("该状态已不存在：the state before it is gone").waitFor();
  });
});

test("a title is changed, a schema is set, and everything is exported", async () => {
  const { id } = await makeQuest(studio, null);
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/conversations/${id}`);
    // A conversation without a title is named by its first message.
    await page.getByRole("heading", { level: 1, name: "Open the chest" }).waitFor();
    await page.getByRole("button", { name: "Change the title" }).click();
    await page.getByRole("textbox", { name: "Title" }).fill("Down the well");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { level: 1, name: "Down the well" }).waitFor();
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
    assert.equal(saved.suggestedFilename(), `${id}.jsonl`);
    await page.getByRole("link", { name: "Schema" }).click();
    const editor = page.getByRole("textbox", { name: "JSON Schema" });
    await editor.click();
    await page.keyboard.press("ControlOrMeta+a");
    await page.keyboard.insertText('{"properties": {"gold": {"type": "string"}}}');
    await page.getByRole("button", { name: "Save the schema" }).click();
    await page.getByText("/gold").waitFor();
    await assertAccessible(page);
  });
});

test("a state of many members scrolls in pieces", async () => {
  const made = (await studio.request("POST", "/api/v1/conversations", {})) as { conversation_id: string };
  const id = made.conversation_id;
  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`key ${index}`, index]));
  await studio.request("POST", `/api/v1/conversations/${id}/state/operations`, { operations: [["SET", "many", many]] });
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/conversations/${id}?tab=state`);
    await page.getByText("5,000 members").waitFor();
    assert.ok((await page.getByRole("list", { name: "State" }).getByRole("listitem").count()) < 100);
    await page.getByRole("searchbox", { name: "Search names, paths and values" }).fill("key 4999");
    await page.getByText("many").first().waitFor();
    await page.getByRole("button", { name: "Copy the path many.key 4999" }).waitFor();
  });
});
