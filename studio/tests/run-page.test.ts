import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, type Page } from "playwright-core";
import { beginDialogue, say, SCRIPT, storeScript } from "./run/kit.ts";
import { assertAccessible, openBrowser, withPage } from "./support/browser.ts";
import { Studio } from "./support/server.ts";

let browser: Browser;

before(async () => {
  browser = await openBrowser();
});

after(() => browser.close());

/** Runs a test on a server of its own, with recorded replies in order. */
function testOnStudio(title: string, act: (studio: Studio) => Promise<void>): void {
  test(title, async () => {
    const studio = await Studio.start({ replay: "studio/tests/run/replies.jsonl" });
    try {
      await act(studio);
    } finally {
      await studio.stop();
    }
  });
}

const chat = (page: Page) => page.getByRole("list", { name: "Dialogue" });

testOnStudio("S-096: a script that was never published is run as a draft", async (studio) => {
  await studio.request("POST", "/api/v1/scripts?draft=true", { name: "A draft", yaml: SCRIPT });
  await withPage(browser, studio, { language: "en" }, async (page) => {
    await page.goto("/run?new");
    await page.getByRole("combobox", { name: "Script" }).last().fill("A draft");
    await page.keyboard.press("Enter");
    await page.getByText("version 1 (draft)").waitFor();
    await page.getByRole("textbox", { name: "用户名" }).waitFor();
    await assertAccessible(page);
    await page.getByRole("button", { name: "Begin", exact: true }).click();
    await page.getByRole("heading", { level: 1, name: "A draft · ABC" }).waitFor();
    await page.getByText("The model speaks first.").waitFor();
    await page.getByRole("button", { name: "Let the model begin" }).click();
    await chat(page).getByText("有三个部分").waitFor();
  });
});

testOnStudio("S-096: the chat says what each round came to, and the tree where the dialogue stands", async (studio) => {
  const id = await beginDialogue(studio, await storeScript(studio));
  await say(studio, id);
  await withPage(browser, studio, { language: "en" }, async (page) => {
    await page.goto(`/run/${id}`);
    await chat(page).getByText(/^goes on, the model’s reason: ./).waitFor();
    await chat(page).getByText(/^unmet: .*understanding is below the threshold/).waitFor();
    const place = page.getByRole("list", { name: "Place in the script" });
    const here = place.locator("[aria-current=step]");
    await here.getByRole("img", { name: "here" }).waitFor();
    await place.getByRole("img", { name: "Not reached yet" }).first().waitFor();
    const struck = await place.getByRole("listitem").evaluateAll((all) => all.some((one) => getComputedStyle(one).textDecorationLine !== "none"));
    assert.equal(struck, false);
    // The plot has one round, and the whole range of understanding.
    assert.deepEqual(await page.locator("figure svg text").allTextContents().then((all) => [all[0], all.at(-2), all.at(-1)]), ["0", "100", "1"]);
    await assertAccessible(page);
  });
});

testOnStudio("a run leads to its script, and to another run of it", async (studio) => {
  const script = await storeScript(studio);
  const id = await beginDialogue(studio, script);
  await say(studio, id);
  await withPage(browser, studio, { language: "en" }, async (page) => {
    await page.goto("/run");
    await page.getByRole("list", { name: "Runs" }).getByText(id.slice(-6)).waitFor();
    await page.goto(`/run/${id}`);
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as test" }).click()]);
    await page.getByText(`1 turn downloaded as ${file.suggestedFilename()}`).waitFor();
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("dialog").getByText("version 1 (published)").waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "version 1" }).click();
    await page.waitForURL(`**/scripts/${script}`);
    await page.goBack();
    await page.getByRole("button", { name: "Edit script" }).click();
    await page.waitForURL(`**/scripts/${script}`);
  });
});

testOnStudio("the chat stays at its end while turns are added", async (studio) => {
  const id = await beginDialogue(studio, await storeScript(studio));
  await say(studio, id);
  await withPage(browser, studio, { language: "en" }, async (page) => {
    await page.setViewportSize({ width: 1280, height: 560 });
    await page.goto(`/run/${id}`);
    for (const words of ["one ".repeat(300).trim(), "two ".repeat(300).trim()]) {
      await page.getByRole("textbox", { name: "What the user says…" }).fill(words);
      await page.keyboard.press("Enter");
      await chat(page).getByText(words).waitFor();
      await page.getByRole("textbox", { name: "What the user says…" }).waitFor();
      await page.waitForFunction(() => {
        const list = document.querySelector("[role=list][aria-label=Dialogue]");
        return list !== null && list.scrollHeight > list.clientHeight && list.scrollHeight - list.scrollTop - list.clientHeight < 2;
      });
    }
  });
});
