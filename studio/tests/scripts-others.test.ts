import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { assertAccessible, withPage } from "./support/browser.ts";
import { makeScript, openScript, SAY, scriptOf, storedScript, waitForVersion } from "./support/scripts.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage();

const OTHERS = scriptOf(SAY.replace("Hello", "From somebody else"));

const saveElsewhere = (id: string, yaml = OTHERS) => studio.request("PUT", `/api/v1/scripts/${id}?draft=true`, { yaml });

const WORDS = {
  en: { content: "Content", gone: "Somebody else has deleted this script", anew: "Save as a new script", draft: "Draft", open: "Open the script" },
  zh: { content: "讲解内容", gone: "此脚本已被他人删除", anew: "存为新脚本", draft: "草稿", open: "打开脚本" },
} as const;

for (const language of ["zh", "en"] as const) {
  const words = WORDS[language];

  test(`a script that somebody has changed is not deleted from an old list, ${language}`, async () => {
    const name = `Old list ${language}`;
    const id = await makeScript(studio, scriptOf(SAY), name);
    await withPage(browser, studio, { language, allow: [/412/] }, async (page) => {
      await page.goto("/scripts");
      const remove = async () => {
        await page.getByRole("button", { name: language === "zh" ? `删除脚本 ${name}` : `Delete script ${name}` }).click();
        await page.getByRole("tooltip").getByRole("button", { name: language === "zh" ? /删\s*除/ : "Delete" }).click();
      };
      await page.getByRole("link", { name }).waitFor();
      await saveElsewhere(id);
      await remove();
      const notice = page.getByRole("alert").filter({ hasText: name });
      await notice.getByRole("link", { name: words.open }).waitFor();
      await assertAccessible(page);
      assert.equal((await storedScript(studio, id)).yaml, OTHERS);
      await page.getByText(`${words.draft} v2`).first().waitFor();
      await remove();
      await page.getByRole("link", { name }).waitFor({ state: "detached" });
      await assert.rejects(studio.request("GET", `/api/v1/scripts/${id}`), /404/);
    });
  });

  test(`a script that somebody deletes while it is edited is kept, and saved as a new one, ${language}`, async () => {
    const id = await makeScript(studio, scriptOf(SAY), `Gone ${language}`);
    await withPage(browser, studio, { language, allow: [/404/] }, async (page) => {
      await openScript(page, id);
      const content = page.getByLabel(words.content, { exact: true });
      await content.waitFor();
      await studio.request("DELETE", `/api/v1/scripts/${id}`);
      await content.fill("Typed too late");
      await page.getByRole("alert").filter({ hasText: words.gone }).waitFor();
      await assertAccessible(page);
      await page.reload();
      await page.getByRole("alert").filter({ hasText: words.gone }).waitFor();
      await page.getByRole("heading", { level: 1, name: `Gone ${language}` }).waitFor();
      assert.equal(await content.inputValue(), "Typed too late");
      await content.fill("Typed later still");
      await page.getByRole("button", { name: words.anew }).click();
      await page.waitForURL((url) => !url.pathname.endsWith(id));
      await waitForVersion(page, 1, words.draft);
      const newId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      assert.match((await storedScript(studio, newId)).yaml, /content: Typed later still\n/);
    });
  });
}

test("nothing is published that somebody else has saved behind, and their version is shown", async () => {
  const id = await makeScript(studio, scriptOf(SAY), "Overtaken", true);
  await withPage(browser, studio, { allow: [/412/] }, async (page) => {
    await openScript(page, id);
    await page.getByLabel("Content", { exact: true }).waitFor();
    await saveElsewhere(id);
    await page.getByRole("button", { name: "Publish", exact: true }).click();
    await page.getByText("Nothing was published: somebody else has saved version 2").waitFor();
    assert.equal(await page.getByLabel("Content", { exact: true }).inputValue(), "From somebody else");
    assert.equal((await storedScript(studio, id)).published, null);
    await page.getByRole("button", { name: "Publish", exact: true }).click();
    await page.getByText("Published v2").waitFor();
  });
});

test("the drawer of versions compares with the one before, though numbers are missing, and says what fails", async () => {
  const id = await makeScript(studio, scriptOf(SAY), "Versions");
  await withPage(browser, studio, { allow: [/Failed to load resource/] }, async (page) => {
    await openScript(page, id);
    const content = page.getByLabel("Content", { exact: true });
    await content.fill("Once");
    await waitForVersion(page, 2);
    await content.fill("Twice");
    await waitForVersion(page, 3);
    await page.getByRole("button", { name: "Versions", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("-                content: Hello").waitFor();
    await dialog.getByText("+                content: Twice").waitFor();
    assert.equal(await dialog.getByRole("button", { name: /^Bring back/ }).count(), 2);
    await page.route("**/api/v1/scripts/*?version=1", (route) => route.abort());
    await dialog.getByRole("button", { name: "Bring back version 1" }).click();
    await dialog.getByRole("alert").filter({ hasText: "The server cannot be reached" }).waitFor();
    await page.unroute("**/api/v1/scripts/*?version=1");
    await page.route("**/publish", (route) => route.abort());
    await dialog.getByRole("button", { name: "Publish version 3" }).click();
    await dialog.getByRole("alert").filter({ hasText: "The server cannot be reached" }).waitFor();
    await dialog.getByRole("button", { name: "Bring back version 1" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.equal(await content.inputValue(), "Hello");
  });
});

test("forms of other actions show what the script has, and change only that", async () => {
  const interview = readFileSync(join(import.meta.dirname, "../../examples/requirements-interview/script.yaml"), "utf8");
  const id = await makeScript(studio, interview, "Interview");
  await withPage(browser, studio, {}, async (page) => {
    await openScript(page, id, "sessions[0].phases[1].steps[0].actions[0]");
    const fields = page.getByLabel("Fields, one a line", { exact: true });
    await fields.waitFor();
    assert.equal(await page.getByLabel("Title", { exact: true }).inputValue(), "Numbers for {quality}");
    assert.equal(await fields.inputValue(), "measure\ntarget\ndeadline");
    await fields.fill("measure\nunit\ndeadline");
    await waitForVersion(page, 2);
    await page.getByRole("treeitem", { name: /ai_think/ }).click();
    const output = page.getByLabel(/^Variables it fills/);
    await output.waitFor();
    await output.fill((await output.inputValue()).replace("usability", "usability\n  or none of them"));
    await page.getByLabel("What to think about", { exact: true }).fill("What matters?");
    await page.getByRole("treeitem", { name: /What matters/ }).waitFor();
    await page.getByRole("status").filter({ hasText: /^\s*Saved/ }).waitFor();
    const { yaml } = await storedScript(studio, id);
    const indent = " ".repeat(20);
    assert.equal(
      yaml,
      interview
        .replace("[measure, target, deadline]", "[measure, unit, deadline]")
        .replace(/prompt: The client wants .*/, "prompt: What matters?")
        .replace(/quality: (one of .*)\n/, (_, about: string) => `quality: |-\n${indent}${about}\n${indent}or none of them\n`),
    );
  });
});
