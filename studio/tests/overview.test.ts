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
