import assert from "node:assert/strict";
import { test } from "node:test";
import { type Page } from "playwright-core";
import { assertAccessible, withPage } from "./support/browser.ts";
import { makeScript, openScript, SAY, scriptOf, waitForVersion } from "./support/scripts.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage();

const placeOf = async (page: Page, name: string) => {
  const box = await page.getByRole("button", { name, exact: true }).boundingBox();
  return box === null ? null : [box.x, box.y, box.width];
};

for (const language of ["en", "zh"] as const) {
  const words =
    language === "en"
      ? { add: "Add action", kept: "Draft kept in this browser: ", publish: "Publish", run: "Run", content: "Content" }
      : { add: "添加动作", kept: "草稿保留在此浏览器中：", publish: "发布", run: "运行", content: "讲解内容" };

  test(`S-095: an unfinished draft is kept and says why it is not on the server (${language})`, async () => {
    const id = await makeScript(studio, scriptOf(SAY));
    await withPage(browser, studio, { language, allow: [/status of 422/] }, async (page) => {
      await openScript(page, id);
      await page.getByLabel(words.content, { exact: true }).fill("Changed");
      await page.getByText(/v2$/).waitFor();
      const before = await placeOf(page, words.publish);
      await page.getByRole("button", { name: words.add, exact: true }).click();
      const status = page.getByRole("status").filter({ hasText: words.kept });
      await status.waitFor();
      for (const name of [words.publish, words.run]) {
        const button = page.getByRole("button", { name, exact: true });
        assert.ok(await button.isDisabled());
        assert.ok((await button.getAttribute("title"))?.startsWith(words.kept));
      }
      assert.deepEqual(await placeOf(page, words.publish), before);
      await assertAccessible(page);
      await page.getByLabel(words.content, { exact: true }).fill("Written");
      await waitForVersion(page, 3, language === "en" ? "Draft" : "草稿");
      assert.ok(await page.getByRole("button", { name: words.publish, exact: true }).isEnabled());
    });
  });
}

test("buttons of the structure keep their places, and a new part is named at once", async () => {
  const id = await makeScript(studio, scriptOf(SAY));
  const buttons = ["Add session", "Add phase", "Add step", "Add action", "Move up", "Move down", "Duplicate", "Delete"];
  await withPage(browser, studio, {}, async (page) => {
    await openScript(page, id, "sessions[0]");
    const places = () => Promise.all(buttons.map((name) => placeOf(page, name)));
    await page.getByRole("button", { name: "Add phase" }).waitFor();
    const before = await places();
    for (const part of [/Phase\s*p/, /Step\s*one/, /ai_say/]) {
      await page.getByRole("treeitem", { name: part }).click();
      assert.deepEqual(await places(), before);
    }
    await page.getByRole("button", { name: "Add phase" }).click();
    await page.waitForFunction(() => (document.activeElement as HTMLInputElement).value === "New phase");
    await page.keyboard.type("Farewell");
    await page.getByRole("treeitem", { name: "Farewell" }).waitFor();
  });
});

test("S-097: folded exit conditions and types of actions say what they are", async () => {
  const id = await makeScript(studio, scriptOf(SAY));
  await withPage(browser, studio, {}, async (page) => {
    await openScript(page, id);
    const folded = page.getByRole("button", { name: "Advanced exit conditions (optional)" });
    await folded.getByText("80 %, no open questions").waitFor();
    await page.getByText(/^The action ends when the model suggests it/).waitFor();
    await folded.click();
    await page.getByRole("switch", { name: "Allow leaving with open questions" }).click();
    await folded.getByText("80 %, questions may be open").waitFor();
    await page.getByTitle("Say (ai_say): explains over several rounds").waitFor();
  });
});

test("a new script is named at once, and an example is taken beside others", async () => {
  await makeScript(studio, scriptOf(SAY));
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/scripts");
    await page.getByRole("button", { name: "New script" }).click();
    await page.waitForFunction(() => document.activeElement?.id === "name");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Other ways to begin" }).click();
    await page.getByRole("menuitem", { name: "Start from an example" }).click();
    await page.getByRole("heading", { level: 1, name: "Example: ABC model" }).waitFor();
  });
});

test("S-095: what is typed and not valid is not left out of a run without a word", async () => {
  const id = await makeScript(studio, scriptOf(SAY));
  await withPage(browser, studio, {}, async (page) => {
    await openScript(page, id);
    const rounds = page.getByLabel("Maximum rounds", { exact: true });
    await rounds.fill("99");
    await rounds.press("Tab");
    await page.getByText(/^The form is not valid and was not saved/).waitFor();
    const run = page.getByRole("button", { name: "Run", exact: true });
    assert.ok(await run.isDisabled());
    assert.equal(await run.getAttribute("title"), "A form is not valid: mend it or undo it first");
    await rounds.fill("9");
    await rounds.press("Tab");
    await waitForVersion(page, 2);
    assert.ok(await run.isEnabled());
  });
});
