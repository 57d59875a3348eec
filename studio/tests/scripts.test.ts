import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { assertAccessible, assertFits, withPage } from "./support/browser.ts";
import { makeScript, openScript, SAY, scriptOf, type ScriptVersion, storedScript, waitForVersion } from "./support/scripts.ts";
import { Studio } from "./support/server.ts";
import { openStage } from "./support/stage.ts";

const ABC = readFileSync(join(import.meta.dirname, "../../examples/abc-model/script.yaml"), "utf8");

const { browser, studio } = await openStage();

const make = (yaml: string, name = "ABC", server = studio) => makeScript(server, yaml, name);
const stored = (id: string, server = studio) => storedScript(server, id);
const open = openScript;
const script = scriptOf;

const WORDS = {
  en: {
    ...{ content: "Content", rounds: "Maximum rounds", acknowledge: "Require acknowledgement", name: "Name", draft: "Draft", two: /Step\s*two/ },
    ...{ publish: "Publish", published: "Published", versions: "Versions", back: "Bring back version 1", undo: "Undo", redo: "Redo" },
    ...{ conflict: "Somebody else has changed this script", difference: "Difference 1", mine: "Mine", merge: "Save the result" },
  },
  zh: {
    ...{ content: "讲解内容", rounds: "最大交互轮数", acknowledge: "需要用户确认", name: "名称", draft: "草稿", two: /步骤\s*two/ },
    ...{ publish: "发布", published: "已发布", versions: "版本", back: "恢复版本 1", undo: "撤销", redo: "重做" },
    ...{ conflict: "此脚本已被他人更改", difference: "差异 1", mine: "我的版本", merge: "保存合并结果" },
  },
} as const;

for (const language of ["zh", "en"] as const) {
  const words = WORDS[language];

  test(`an edit keeps every other byte of the example, comments too, ${language} (S-093)`, async () => {
    const id = await make(ABC);
    await withPage(browser, studio, { language }, async (page) => {
      await open(page, id);
      const rounds = page.getByLabel(words.rounds, { exact: true });
      await rounds.waitFor();
      await rounds.fill("6");
      await rounds.press("Tab");
      await waitForVersion(page, 2, words.draft);
      const version = await stored(id);
      assert.equal(version.yaml, ABC.replace("max_rounds: 5", "max_rounds: 6"));
      assert.equal(version.published, 1);
      await page.getByRole("button", { name: words.publish, exact: true }).click();
      await page.getByText(`${words.published} v2`).waitFor();
      assert.equal((await stored(id)).published, 2);

      await page.getByRole("button", { name: words.versions, exact: true }).click();
      await page.getByRole("dialog").getByText("+                max_rounds: 6").waitFor();
      await page.getByRole("button", { name: words.back }).click();
      await waitForVersion(page, 3, words.draft);
      assert.equal((await stored(id)).yaml, ABC);
      await page.getByRole("button", { name: words.undo }).click();
      await waitForVersion(page, 4, words.draft);
      assert.equal((await stored(id)).yaml, version.yaml);
      await page.getByRole("button", { name: words.redo }).click();
      await waitForVersion(page, 5, words.draft);
      assert.equal((await stored(id)).yaml, ABC);
    });
  });

  test(`an older action becomes a newer one when it is changed, and not before, ${language} (S-092, S-094)`, async () => {
    const legacy = script("              - type: ai_say\n                condition: age > 17 # kept\n                ai_say: |\n                  Hello\n                  there\n");
    const id = await make(legacy);
    await withPage(browser, studio, { language }, async (page) => {
      await open(page, id);
      const content = page.getByLabel(words.content, { exact: true });
      await content.waitFor();
      assert.equal(await content.inputValue(), "Hello\nthere\n");
      await page.getByRole("treeitem", { name: words.two }).click();
      await page.getByLabel(words.name, { exact: true }).waitFor();
      assert.deepEqual([(await stored(id)).yaml, (await stored(id)).latest], [legacy, 1]);
      await page.getByRole("treeitem", { name: /ai_say/ }).click();
      await page.getByRole("switch", { name: words.acknowledge }).click();
      await waitForVersion(page, 2, words.draft);
      const changed = legacy.replace("ai_say: |", "content: |");
      assert.equal((await stored(id)).yaml, changed.replace("                  there\n", "                  there\n                require_acknowledgment: false\n"));
    });
  });

  test(`two tabs never overwrite each other: both versions are merged, ${language}`, async () => {
    const id = await make(script(SAY));
    await withPage(browser, studio, { language, allow: [/412/] }, async (page) => {
      await open(page, id);
      const content = page.getByLabel(words.content, { exact: true });
      await content.waitFor();
      const other = await page.context().newPage();
      await open(other, id);
      await other.getByLabel(words.content, { exact: true }).fill("From the other tab");
      await waitForVersion(other, 2, words.draft);
      await content.fill("From this tab");
      await page.getByText(words.conflict).first().waitFor();
      assert.match((await stored(id)).yaml, /content: From the other tab\n/);
      await page.getByRole("figure").filter({ hasText: "From this tab" }).waitFor();
      await page.getByRole("figure").filter({ hasText: "From the other tab" }).waitFor();
      await assertAccessible(page);
      await page.getByRole("radiogroup", { name: words.difference }).getByText(words.mine).click();
      await page.getByRole("button", { name: words.merge }).click();
      await waitForVersion(page, 3, words.draft);
      assert.match((await stored(id)).yaml, /content: From this tab\n/);
      // The other tab's text stays as a version, although both were autosaved.
      const second = (await studio.request("GET", `/api/v1/scripts/${id}?version=2`)) as ScriptVersion;
      assert.match(second.yaml, /content: From the other tab\n/);
    });
  });
}

test("what was typed is not lost when another action is chosen at once (S-095)", async () => {
  const two = `${SAY}              - type: ai_ask\n                question: Why?\n                variable: why\n`;
  const id = await make(script(two));
  await withPage(browser, studio, {}, async (page) => {
    await open(page, id);
    await page.getByLabel("Content", { exact: true }).fill("Typed last");
    await page.getByRole("treeitem", { name: /ai_ask/ }).click();
    await page.getByLabel("Question", { exact: true }).fill("Why not, {why} {lost}?");
    await page.getByRole("list", { name: "Variables used" }).getByText("undefined").waitFor();
    assert.equal(await page.getByRole("list", { name: "Variables used" }).getByText("undefined").count(), 1);
    await page.getByRole("treeitem", { name: /Typed last/ }).click();
    assert.equal(await page.getByLabel("Content", { exact: true }).inputValue(), "Typed last");
    await page.getByText(/Draft v\d/).waitFor();
    await page.getByRole("status").filter({ hasText: /^\s*Saved/ }).waitFor();
    const { yaml } = await stored(id);
    assert.match(yaml, /content: Typed last\n/);
    assert.match(yaml, /question: "?Why not, \{why\} \{lost\}\?"?\n/);
  });
});

test("a step is moved by keys alone, with its comment", async () => {
  const id = await make(script(SAY));
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/scripts/${id}`);
    const tree = page.getByRole("tree", { name: "Structure" });
    await tree.focus();
    for (let down = 0; down < 5; down += 1) await page.keyboard.press("ArrowDown");
    await page.locator('[role="treeitem"][aria-selected="true"]').filter({ hasText: "two" }).waitFor();
    await page.keyboard.press("Alt+ArrowUp");
    await waitForVersion(page, 2);
    const [head = "", rest = ""] = script(SAY).split("          - topic: one");
    const [first = "", second = ""] = rest.split("          - topic: two");
    assert.equal((await stored(id)).yaml, `${head}          - topic: two${second}          - topic: one${first}`);
    await page.keyboard.press("Control+d");
    await waitForVersion(page, 3);
    await page.keyboard.press("Delete");
    await waitForVersion(page, 4);
    assert.equal((await stored(id)).yaml, `${head}          - topic: two${second}          - topic: one${first}`);
    await page.keyboard.press("Alt+ArrowDown");
    await page.getByRole("button", { name: "Undo" }).click();
  });
});

test("a part is moved by dragging", async () => {
  const id = await make(script(SAY));
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/scripts/${id}`);
    await page.getByRole("treeitem", { name: /ai_say/ }).dragTo(page.getByRole("treeitem", { name: /Step two/ }));
    await waitForVersion(page, 2);
    assert.match((await stored(id)).yaml, /topic: one\n {12}actions: \[\]\n {10}- topic: two # stays with it\n {12}actions:\n {14}- type: ai_say # explains\n {16}content: Hello\n$/);
  });
});

test("work goes on while the server is away, and is saved by itself when it is back", async () => {
  const own = await Studio.start();
  try {
    const id = await make(script(SAY), "ABC", own);
    await withPage(browser, own, { allow: [/Failed to load resource/] }, async (page) => {
      await open(page, id);
      const content = page.getByLabel("Content", { exact: true });
      await content.waitFor();
      await own.stopServer();
      await content.fill("Written while it was away");
      await page.getByText("Offline: kept in the browser").waitFor();
      await own.startServer();
      await waitForVersion(page, 2);
      assert.match((await stored(id, own)).yaml, /content: Written while it was away\n/);
    });
  } finally {
    await own.stop();
  }
});

test("unsaved work comes back after the tab has crashed", async () => {
  const own = await Studio.start();
  try {
    const id = await make(script(SAY), "ABC", own);
    await withPage(browser, own, { allow: [/Failed to load resource/] }, async (page) => {
      await open(page, id);
      await page.getByLabel("Content", { exact: true }).waitFor();
      await own.stopServer();
      await page.getByLabel("Content", { exact: true }).fill("Nearly lost");
      await page.getByText("Offline: kept in the browser").waitFor();
      const crashed = page.waitForEvent("crash");
      await page.goto("chrome://crash").catch(() => null);
      await crashed;
      await own.startServer();
      const again = await page.context().newPage();
      await open(again, id);
      await again.getByText(/Unsaved changes of .* were put back/).waitFor();
      assert.equal(await again.getByLabel("Content", { exact: true }).inputValue(), "Nearly lost");
      await again.getByRole("button", { name: "Keep them" }).click();
      await waitForVersion(again, 2);
      assert.match((await stored(id, own)).yaml, /content: Nearly lost\n/);
    });
  } finally {
    await own.stop();
  }
});

test("a text that is no YAML stays as text, with its place; findings stand at their line", async () => {
  const id = await make(script(SAY));
  await withPage(browser, studio, { allow: [/422/] }, async (page) => {
    await open(page, id);
    const text = page.getByRole("textbox", { name: "Text" });
    await text.click();
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("broken: [\n");
    await page.getByText("The text is not valid YAML").first().waitFor();
    await page.getByRole("status").filter({ hasText: "Draft kept in this browser" }).waitFor();
    assert.equal((await stored(id)).latest, 1);
    await page.reload();
    await page.getByText(/were put back/).waitFor();
    assert.match((await page.getByRole("textbox", { name: "Text" }).textContent()) ?? "", /broken: \[/);
    await page.getByRole("button", { name: "Discard them" }).click();
    await page.getByRole("treeitem", { name: /ai_say/ }).click();
    await page.getByLabel("Content", { exact: true }).fill("Hello {nobody}");
    await page.getByRole("region", { name: "Findings" }).getByText(/nobody/).waitFor();
    await page.locator(".cm-lint-marker, .cm-lintRange").first().waitFor();
    await page.getByRole("button", { name: "Line 10" }).first().click();
  });
});

test("names and texts with markup do not run", async () => {
  const evil = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';
  const id = await make(
    script(`              - type: ai_say\n                content: '${evil} [x](javascript:window.ran=1)'\n`).replace("phase: p ", `phase: '${evil}' `),
    evil,
  );
  await withPage(browser, studio, { language: "zh" }, async (page) => {
    await page.goto("/scripts");
    await page.getByRole("link", { name: evil }).click();
    await page.getByRole("treeitem", { name: /ai_say/ }).click();
    await page.getByLabel("讲解内容", { exact: true }).waitFor();
    await page.getByRole("button", { name: "版本", exact: true }).click();
    await page.getByRole("dialog").waitFor();
    assert.equal(await page.evaluate(() => (window as unknown as { ran?: number }).ran), undefined);
    assert.equal(await page.locator("main img[src=x]").count(), 0);
    assert.ok(id.length > 0);
  });
});

test("the list is searched, and fits a narrow screen", async () => {
  await make(ABC, "唯一的名字");
  await withPage(browser, studio, { language: "zh", width: 390, theme: "dark" }, async (page) => {
    await page.goto("/scripts");
    await page.getByRole("searchbox", { name: "搜索脚本" }).fill("唯一");
    await page.getByRole("link", { name: "唯一的名字" }).waitFor();
    assert.equal(await page.getByRole("list", { name: "脚本列表" }).getByRole("link").count(), 1);
    await assertFits(page);
    await assertAccessible(page);
    await page.getByRole("link", { name: "唯一的名字" }).click();
    await page.getByRole("treeitem", { name: /ai_say/ }).click();
    await page.getByText("属性", { exact: true }).first().click();
    await page.getByLabel("讲解内容", { exact: true }).waitFor();
    await assertFits(page);
    await assertAccessible(page);
  });
});

test("an empty list offers an example, which is run as the draft that it is", async () => {
  const empty = await Studio.start();
  try {
    await withPage(browser, empty, {}, async (page) => {
      await page.goto("/scripts");
      await page.getByRole("button", { name: "Start from an example" }).click();
      await page.getByRole("heading", { level: 1, name: "Example: ABC model" }).waitFor();
      const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      const { yaml, published } = await stored(id, empty);
      assert.equal(yaml, ABC);
      assert.equal(published, null);
      await page.getByRole("button", { name: "Run", exact: true }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("version 1").waitFor();
      await dialog.getByRole("button", { name: "Begin" }).click();
      await page.waitForURL(/\/run\/[^?]+$/);
      const run = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      const dialogue = (await empty.request("GET", `/api/v1/dialogues/${run}`)) as { script_id: string; version: number };
      assert.deepEqual([dialogue.script_id, dialogue.version], [id, 1]);
    });
  } finally {
    await empty.stop();
  }
});

test("a part that was just added is not told what it lacks", async () => {
  const id = await make(script(SAY));
  // A script without content is refused, and not saved.
  await withPage(browser, studio, { allow: [/status of 422/] }, async (page) => {
    await open(page, id, "sessions[0].phases[0].steps[0]");
    await page.getByRole("button", { name: "Add action" }).click();
    const form = page.getByRole("region", { name: "Properties" });
    await form.getByLabel("Content", { exact: true }).waitFor();
    const lacks = page.getByRole("region", { name: "Findings" }).getByText("content_required");
    await lacks.waitFor();
    assert.equal(await form.getByRole("listitem").count(), 0);
    await form.getByLabel("Content", { exact: true }).fill("Hi {nobody}");
    await form.getByRole("listitem").filter({ hasText: "nobody" }).first().waitFor();
  });
});
