import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertFits, withPage } from "./support/browser.ts";
import { makeQuest, QUEST } from "./support/quest.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage({ replay: QUEST });

for (const language of ["en", "zh"] as const) {
  test(`figures are those of the replies, over the time that is chosen (${language})`, async () => {
    const before = (await studio.request("GET", "/api/v1/figures")) as { total: { completed: number } };
    const { messages } = await makeQuest(studio);
    const completed = before.total.completed + messages.length;
    await withPage(browser, studio, { language, width: language === "zh" ? 390 : 1280 }, async (page) => {
      await page.goto("/");
      const name = language === "zh" ? "回复" : "Replies";
      const figure = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name, exact: true }) });
      await figure.getByText(String(completed), { exact: true }).waitFor();
      await page.getByText(language === "zh" ? "近 2 天" : "2 days", { exact: true }).click();
      await page.waitForURL((url) => url.searchParams.get("range") === "2d");
      await figure.getByText(String(completed), { exact: true }).waitFor();
      const plot = page.getByRole("figure", { name }).first();
      await plot.getByRole("button", { name: language === "zh" ? "显示为表格" : "Show as table" }).click();
      const cells = await plot.getByRole("cell").allInnerTexts();
      assert.ok(cells.some((cell) => cell.trim() === String(completed)), cells.join(" "));
      await assertAccessible(page);
      await assertFits(page);
    });
  });
}

test("repairs by rule are seen over time", async () => {
  await makeQuest(studio);
  const { repairs } = (await studio.request("GET", "/api/v1/figures")) as { repairs: { rule: string; code: string; count: number }[] };
  const [first] = repairs;
  assert.ok(first !== undefined);
  await withPage(browser, studio, {}, async (page) => {
    for (const range of ["2d", "30d"]) {
      await page.goto(`/?range=${range}`);
      const plot = page.getByRole("figure", { name: "Repairs by rule" });
      await plot.getByRole("img", { name: "Repairs by rule" }).waitFor();
      await plot.getByRole("button", { name: "Show as table" }).click();
      await plot.getByRole("columnheader", { name: `${first.rule} ${first.code}` }).waitFor();
      const counts = (await plot.getByRole("row").allInnerTexts()).slice(1).map((row) => Number(row.split("\t")[1]));
      assert.equal(counts.reduce((sum, count) => sum + count, 0), first.count, range);
      await assertAccessible(page);
    }
  });
});
