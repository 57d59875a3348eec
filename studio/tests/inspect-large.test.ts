import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Page } from "playwright-core";
import { assertAccessible, assertFits, downloadOf, withPage } from "./support/browser.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage();
const folder = mkdtempSync(join(tmpdir(), "tambour-texts-"));

after(() => rmSync(folder, { recursive: true }));

/** Longest task of the page during `act`, in milliseconds; the page does not respond during that task. */
async function longestTask(page: Page, act: () => Promise<void>): Promise<number> {
  await page.evaluate(() => {
    const seen = window as unknown as { longest: number };
    seen.longest = 0;
    new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => (seen.longest = Math.max(seen.longest, duration)))).observe({ type: "longtask" });
  });
  await act();
  return page.evaluate(() => (window as unknown as { longest: number }).longest);
}

for (const language of ["en", "zh"] as const) {
  const words =
    language === "en"
      ? { title: "This text is too large to be checked here", next: "Next part", part: (part: number) => `Part ${part} of 573 (150 MB)` }
      : { title: "这段文本太大，无法在此检查", next: "下一部分", part: (part: number) => `第 ${part} 部分，共 573 部分（150 MB）` };

  test(`a reply of 150 MB is shown in parts, and the command that checks it is told (${language})`, async () => {
    const path = join(folder, "large.txt");
    const line = `${"0123456789 ".repeat(9)}\n`;
    writeFileSync(path, `<final>\n${line.repeat(1_500_000)}</final>\n`);
    await withPage(browser, studio, { language, allow: [/status of 413/] }, async (page) => {
      await page.goto("/inspect");
      const longest = await longestTask(page, async () => {
        await page.locator("input[type=file]").setInputFiles(path);
        await page.getByRole("alert").getByText(words.title).waitFor();
        await page.getByText(/^tambour check --option limits\.input=15\d{7} large\.txt$/).waitFor();
        const text = page.getByRole("region", { name: "large.txt" });
        await text.filter({ hasText: "<final>" }).waitFor();
        await page.getByText(words.part(1)).waitFor();
        await page.getByRole("button", { name: words.next }).click();
        await page.getByText(words.part(2)).waitFor();
        await text.filter({ hasNotText: "<final>" }).filter({ hasText: "0123456789" }).waitFor();
      });
      assert.ok(longest < 1000, `a task of ${longest} ms`);
      await assertAccessible(page);
      await assertFits(page);
      // A text that the server refuses is reported in the same way.
      const refused = join(folder, "refused.txt");
      writeFileSync(refused, `<final>\n${line.repeat(60_000)}</final>\n`);
      await page.locator("input[type=file]").setInputFiles(refused);
      await page.getByRole("alert").getByText(words.title).waitFor();
      await page.getByText("tambour check refused.txt", { exact: true }).waitFor();
    });
  });
}

test("a record that is too large is shown in parts and not read", async () => {
  const path = join(folder, "large.jsonl");
  const large = JSON.stringify({ id: "large", reply: "0123456789 ".repeat(1_700_000) });
  writeFileSync(path, `${large}\n{"id":"small","protocol":"plain","reply":"x"}\n`);
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/inspect");
    await page.locator("input[type=file]").setInputFiles(path);
    await page.getByText("2 of 2 records").waitFor();
    await page.getByRole("option").first().click();
    const record = page.getByRole("region", { name: "Record 1" }).first();
    await record.getByText(`tambour check --field FIELD --option limits.input=${large.length} large.jsonl`, { exact: true }).waitFor();
    await record.getByText(/^Part 1 of 72/).waitFor();
    await page.getByRole("button", { name: "Check the 2 shown" }).click();
    await page.getByText("Passes 1", { exact: true }).waitFor();
  });
});

test("a reply of more than 1 MB is shown in parts, each with the numbers of its lines", async () => {
  const path = join(folder, "parts.txt");
  const lines = Array.from({ length: 30_000 }, (_, at) => `Line ${at + 1} ${"of many ".repeat(5)}`);
  writeFileSync(path, lines.join("\n"));
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/inspect");
    await page.locator("input[type=file]").setInputFiles(path);
    const raw = page.getByRole("list", { name: "Raw text" });
    await raw.getByText(/^Line 1 of/).waitFor();
    await page.getByText(/^Part 1 of 2/).waitFor();
    await page.getByRole("button", { name: "Next part" }).click();
    await page.getByText(/^Part 2 of 2/).waitFor();
    const first = await raw.getByRole("listitem").first().innerText();
    const [number, text] = first.split("\n");
    assert.ok(Number(number) > 10_000 && text?.startsWith(`Line ${number ?? ""} `), first);
    const whole = await downloadOf(page, () => page.getByRole("button", { name: /Download$/ }).click());
    assert.equal(whole, lines.join("\n"));
  });
});

test("a long text is shown in parts, and handed out as a whole", async () => {
  const path = join(folder, "long.jsonl");
  const filler = "0123456789 ".repeat(41_000);
  const records = [{ id: "long", protocol: "thinkingml", reply: `<final>\n${filler}\n</final>\n` }, { id: "broken", other: filler }];
  const lines = records.map((record) => JSON.stringify(record));
  writeFileSync(path, `${lines.join("\n")}\n`);
  await withPage(browser, studio, { language: "en" }, async (page) => {
    await page.goto("/inspect");
    await page.locator("input[type=file]").setInputFiles(path);
    await page.getByRole("option").nth(1).click();
    const record = page.getByRole("region", { name: "Record 2" }).first();
    await record.getByText(/^Part 1 of 3 \(451 kB\)$/).waitFor();
    const text = record.getByRole("region", { name: "Record 2" });
    const parts = [await text.innerText()];
    for (const part of [2, 3]) {
      await record.getByRole("button", { name: "Next part" }).click();
      await record.getByText(`Part ${part} of 3`).waitFor();
      parts.push(await text.innerText());
    }
    assert.equal(parts.join(""), lines[1]);
    assert.equal(await record.getByRole("button", { name: "Next part" }).isDisabled(), true);
    const whole = await downloadOf(page, () => record.getByRole("button", { name: "Download" }).click());
    assert.equal(whole, lines[1]);
    await page.getByRole("option").first().click();
    const raw = await downloadOf(page, () => page.getByRole("button", { name: "Download the raw text" }).click());
    assert.equal(raw, records[0]?.reply);
    await assertAccessible(page);
  });
});

test("of an answer of many blocks those in view are in the page, and long thoughts and values are shown in parts", async () => {
  const path = join(folder, "blocks.jsonl");
  const long = "0123456789 ".repeat(20_000);
  const blocks = Array.from({ length: 300 }, (_, at) => `<details>\n<summary>Block ${at}</summary>\ntext\n</details>\n`).join("");
  const component = `<ui_component view="game.notes">\n${JSON.stringify({ notes: long })}\n</ui_component>\n`;
  const reply = `<thought>\n${long}\n</thought>\n<content>\nx\n</content>\n${component}${blocks}`;
  const record = JSON.stringify({ id: "many", protocol: "filament", reply });
  writeFileSync(path, `${record}\n${record}\n`);
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/inspect");
    await page.locator("input[type=file]").setInputFiles(path);
    await page.getByRole("option").first().click();
    await page.getByText(/^As shown$/).click();
    const answer = page.getByRole("list", { name: "Answer" });
    await answer.getByText("Block 0", { exact: true }).waitFor();
    assert.ok((await answer.getByRole("listitem").count()) < 60);
    await answer.getByText(/^Part 1 of 2/).waitFor();
    // The log is folded at first.
    const log = page.locator("details").filter({ has: page.locator("summary", { hasText: /^Thinking / }) }).first();
    await log.locator("summary").first().click();
    await log.getByText(/^Part 1 of 2/).waitFor();
    await assertAccessible(page);
  });
});
