import assert from "node:assert/strict";
import { test } from "node:test";
import { type Page } from "playwright-core";
import { assertAccessible, assertFits, waitForPage, withPage } from "./support/browser.ts";
import { dropFiles, importFixture, pngOf, roleplay } from "./support/files.ts";
import { PAYLOAD } from "./support/quest.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage();

const hacked = (page: Page): Promise<unknown> => page.evaluate(() => (window as { hacked?: unknown }).hacked);

/** Replaces the text of an editor. */
async function type(page: Page, label: string, text: string): Promise<void> {
  await page.getByRole("textbox", { name: label }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

async function importFiles(files: readonly object[]): Promise<{ card_id?: string; lorebook_id?: string }[]> {
  const named = files.map((json, index) => ({ name: `file${index}.json`, json }));
  const answer = (await studio.request("POST", "/api/v1/imports", { files: named })) as { data: object[] };
  return answer.data;
}

/** Names of an import, by language; the second one is narrow. */
const IMPORT = {
  en: {
    width: 1280, drop: "Drop files here", imported: "4 files were imported", warning: "1 warning", books: "Lorebooks", cards: "Cards",
    preview: "Preview the prompt", tokens: /^\d+ tokens$/, words: "Text of message 1", render: "Render",
    woke: "its key lamp is in the messages", lore: "World info: ", most: "Maximum tokens", dropped: "left out",
  },
  zh: {
    width: 390, drop: "将文件拖到此处", imported: "已导入 4 个文件", warning: "1 条提示", books: "世界书", cards: "角色卡",
    preview: "预览提示词", tokens: /^共 \d+ 个词元$/, words: "第 1 条的内容", render: "生成预览",
    woke: "关键词 lamp 出现在聊天中", lore: "世界书条目：", most: "最多词元数", dropped: "已舍弃",
  },
} as const;

for (const language of ["en", "zh"] as const) {
  const names = IMPORT[language];

  test(`a card is imported by drop, and its prompt is shown (${language})`, async () => {
    await withPage(browser, studio, { language, width: names.width }, async (page) => {
      await page.goto("/prompts/imports");
      if (language === "en") await page.getByText("No cards yet").waitFor();
      await dropFiles(page, names.drop, [
        { name: "bo.png", bytes: pngOf(importFixture("v2-fields")) },
        { name: "newer.json", bytes: JSON.stringify(importFixture("newer-version-warns")) },
        { name: "brunn.json", bytes: roleplay("brunn.json") },
        { name: "reef-book.json", bytes: roleplay("reef-book.json") },
      ]);
      const notice = page.getByRole("status").filter({ hasText: names.imported });
      await notice.getByText(names.warning).waitFor();
      await notice.getByText(/3\.7/).first().waitFor();
      await page.getByRole("list", { name: names.books }).getByRole("link", { name: "reef-book" }).first().waitFor();
      await assertAccessible(page);
      await page.getByRole("list", { name: names.cards }).getByRole("link", { name: "Brunn" }).first().click();
      await page.getByRole("heading", { level: 1, name: "Brunn" }).waitFor();
      await page.getByText("/light(house)?/i").waitFor();
      await page.getByRole("button", { name: names.preview }).click();
      await page.getByText(names.tokens).waitFor();
      await page.getByText("character_card", { exact: true }).first().waitFor();
      await page.getByLabel(names.words).fill("Is that the lamp?");
      await page.getByRole("button", { name: names.render }).click();
      await page.getByText(names.woke).waitFor();
      const parts = page.getByRole("listitem").filter({ hasText: names.lore });
      await parts.getByText(/^\d+$/).first().waitFor();
      await page.getByLabel(names.most).fill("200");
      await page.getByRole("button", { name: names.render }).click();
      await parts.filter({ hasText: names.dropped }).first().waitFor();
      await assertAccessible(page);
      await assertFits(page);
    });
  });
}

test("a broken file is refused with its name, and nothing is imported", async () => {
  await withPage(browser, studio, { language: "zh", allow: [/status of 422/] }, async (page) => {
    await page.goto("/prompts/imports");
    await dropFiles(page, "将文件拖到此处", [{ name: "broken.json", bytes: '{"name": ' }]);
    const alert = page.getByRole("alert").filter({ hasText: "没有导入任何文件" });
    await alert.getByText("broken.json", { exact: true }).waitFor();
    await assertAccessible(page);
  });
});

test("a Skein is edited, and told where it is wrong", async () => {
  await withPage(browser, studio, { allow: [/status of 422/] }, async (page) => {
    await page.goto("/prompts/preview");
    await type(page, "Skein (YAML)", "blocks:\n- tag: world_state\n  data: {place: '{{ place }}'}\n- slot: history");
    await type(page, "Other variables (YAML)", "place: Ruins");
    await page.getByRole("button", { name: "Render" }).click();
    await page.getByRole("region", { name: "world_state" }).getByText("place: Ruins").waitFor();
    await type(page, "Skein (YAML)", "blocks:\n- tag: a\n  texts: b");
    await page.getByRole("button", { name: "Render" }).click();
    await page.getByRole("alert").filter({ hasText: "The prompt cannot be rendered" }).getByText(/texts/).waitFor();
    await type(page, "Skein (YAML)", "blocks:\n- tag: [a\n");
    await page.getByRole("button", { name: "Render" }).click();
    await page.locator(".cm-lint-marker-error").first().waitFor();
  });
});

for (const language of ["en", "zh"] as const) {
  test(`payloads in a card do not run and ask nothing (${language})`, async () => {
    const text = `${PAYLOAD} [x](javascript:window.hacked=1) ![far](https://foreign.example/a.png)`;
    const entries = [{ keys: [PAYLOAD], content: text, comment: text, enabled: true, insertion_order: 1, constant: true }];
    const card = {
      spec: "chara_card_v2",
      spec_version: "2.0",
      data: {
        ...{ name: PAYLOAD, description: text, personality: text, scenario: text, first_mes: text, mes_example: text },
        ...{ creator_notes: text, system_prompt: text, creator: PAYLOAD, character_version: PAYLOAD, tags: [PAYLOAD] },
        alternate_greetings: [text],
        character_book: { name: PAYLOAD, entries, extensions: {} },
        extensions: {},
      },
    };
    const book = { name: PAYLOAD, entries: { 0: { key: [PAYLOAD], content: text, comment: text, constant: true } } };
    const [first, second] = await importFiles([card, book]);
    const pages = [
      "/prompts/imports",
      `/prompts/cards/${first?.card_id ?? ""}`,
      `/prompts/lorebooks/${second?.lorebook_id ?? ""}`,
      `/prompts/preview?card=${first?.card_id ?? ""}&books=${second?.lorebook_id ?? ""}`,
    ];
    await withPage(browser, studio, { language, width: 390 }, async (page) => {
      for (const path of pages) {
        await page.goto(path);
        await waitForPage(page);
        await page.getByText(/onerror/).first().waitFor();
        assert.equal(await hacked(page), undefined, path);
        assert.equal(await page.locator("main img, main script").count(), 0, path);
        assert.equal(await page.locator("main a[href^='javascript' i]").count(), 0, path);
        await assertFits(page);
        await assertAccessible(page);
      }
    });
  });

  test(`macros are migrated, with what changed (${language})`, async () => {
    const words =
      language === "en"
        ? { text: "Text with macros", go: "Migrate", told: "3 macros were translated", before: "Original", after: "Template" }
        : { text: "带宏的文本", go: "迁移", told: "已翻译 3 个宏", before: "原文", after: "模板" };
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/prompts/macros");
      await type(page, words.text, `Hi {{user}}, {{roll:2d6}}. {{if word}}a{{/if}} ${PAYLOAD}`);
      await page.getByRole("button", { name: words.go }).click();
      await page.getByRole("status").filter({ hasText: words.told }).waitFor();
      const after = page.locator(`.cm-content[aria-label="${words.after}"]`);
      await after.getByText(/roll\('2d6'\)/).waitFor();
      await page.locator(`.cm-content[aria-label="${words.before}"]`).getByText(/\{\{roll:2d6\}\}/).waitFor();
      await page.getByText("condition_literal").waitFor();
      assert.equal(await hacked(page), undefined);
      await assertAccessible(page);
      await assertFits(page);
    });
  });
}

test("S-098: a template is edited with its variables marked, published, compared and put back", async () => {
  const id = "ai-say-quiet";
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/prompts");
    await page.getByRole("button", { name: "New template" }).click();
    await page.getByRole("textbox", { name: "Id" }).fill(id);
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByRole("heading", { level: 1, name: id }).waitFor();
    await type(page, "Text of the template", "Now {%time%}. {topic_content} {%tiem%}");
    await page.locator(".tb-system").getByText("{%time%}").waitFor();
    await page.locator(".tb-unknown").getByText("{%tiem%}").waitFor();
    await page.getByText("Did you mean {%time%}?").first().waitFor();
    await page.getByText("Unsaved changes").waitFor();
    await page.getByRole("textbox", { name: "Value of {%time%}" }).fill(PAYLOAD);
    await page.getByText("2 variables have no value").waitFor();
    await page.getByRole("region", { name: "Filled prompt" }).getByText(/Now <img src=x/).waitFor();
    await assertAccessible(page);
    // Typed values are restored when the page is reloaded.
    await page.reload();
    await page.getByText("What was typed last time").waitFor();
    await page.getByRole("button", { name: /(^|\s)Publish$/ }).click();
    await page.getByText("Version 1 is published").first().waitFor();
    await type(page, "Text of the template", "Now {%time%}. {topic_content}");
    await page.getByRole("button", { name: "Save a draft" }).click();
    await page.getByText("Saved as version 2, not published").waitFor();
    const differences = page.getByRole("list", { name: "Differences" });
    await differences.getByText("Now {%time%}. {topic_content} {%tiem%}").waitFor();
    const used = (await studio.request("GET", `/api/v1/templates/${id}`)) as { version: number };
    assert.equal(used.version, 1);
    await page.getByRole("button", { name: "Publish this version" }).click();
    await page.getByText("Version 2 is published").first().waitFor();
    const now = (await studio.request("GET", `/api/v1/templates/${id}`)) as { text: string };
    assert.equal(now.text, "Now {%time%}. {topic_content}");
    // Publishes the earlier version again.
    await page.getByRole("button", { name: "Publish this version" }).click();
    await page.getByText("Version 1 is published").first().waitFor();
    assert.equal(await hacked(page), undefined);
    await assertAccessible(page);
  });
});

test("a template that somebody else changed is not overwritten", async () => {
  const id = "ai-say-shared";
  await studio.request("PUT", `/api/v1/templates/${id}`, { text: "first" });
  await withPage(browser, studio, { language: "zh", allow: [/status of 412/] }, async (page) => {
    await page.goto(`/prompts/templates/${id}`);
    await type(page, "模板文本", "mine");
    await studio.request("PUT", `/api/v1/templates/${id}`, { text: "theirs" });
    await page.getByRole("button", { name: /(^|\s)发布$/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("有人同时修改了此模板").waitFor();
    await dialog.locator('.cm-content[aria-label="对方的版本"]').getByText("theirs").waitFor();
    await dialog.locator('.cm-content[aria-label="你的文本"]').getByText("mine").waitFor();
    await assertAccessible(page);
    await dialog.getByRole("button", { name: "将我的文本存为新版本" }).click();
    await page.getByText("草稿已保存为版本 3").waitFor();
    const texts = [];
    for (const version of [1, 2, 3]) {
      const found = (await studio.request("GET", `/api/v1/templates/${id}?version=${version}`)) as { text: string };
      texts.push(found.text);
    }
    assert.deepEqual(texts, ["first", "theirs", "mine"]);
  });
});

test("an address without a card leads to the cards", async () => {
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/prompts/cards");
    await page.waitForURL("**/prompts/imports");
  });
});
