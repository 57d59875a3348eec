import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, withPage } from "./support/browser.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage();

const WORDS = {
  en: {
    ...{ use: "Publish this version", notPublished: "Nothing was published: somebody else has saved version 3", published: "Version 1 is published" },
    ...{ remove: "Delete", notRemoved: "Nothing was deleted: somebody else has saved version 4", confirm: /Delete/ },
  },
  zh: {
    ...{ use: "发布此版本", notPublished: "没有发布：有人保存了版本 3", published: "版本 1 已发布" },
    ...{ remove: "删除", notRemoved: "没有删除：有人保存了版本 4", confirm: /删\s*除/ },
  },
} as const;

for (const language of ["zh", "en"] as const) {
  const words = WORDS[language];

  test(`a template that somebody has changed is neither published nor deleted unseen, ${language}`, async () => {
    const id = `shared-${language}`;
    const save = (text: string, draft = false) => studio.request("PUT", `/api/v1/templates/${id}?draft=${String(draft)}`, { text });
    const stored = async () => (await studio.request("GET", `/api/v1/templates/${id}`)) as { text: string; published: number };
    await save("first");
    await save("second");
    await withPage(browser, studio, { language, allow: [/status of 412/] }, async (page) => {
      await page.goto(`/prompts/templates/${id}`);
      const use = page.getByRole("button", { name: words.use });
      await use.waitFor();
      await save("third", true);
      await use.click();
      await page.getByText(words.notPublished).waitFor();
      await page.locator(".cm-content").getByText("third").first().waitFor();
      await assertAccessible(page);
      assert.equal((await stored()).published, 2);
      await use.last().click();
      await page.getByText(words.published).first().waitFor();
      assert.equal((await stored()).published, 1);

      await save("fourth", true);
      const remove = async () => {
        await page.getByRole("button", { name: words.remove, exact: true }).click();
        await page.getByRole("dialog").getByRole("button", { name: words.confirm }).click();
      };
      await remove();
      await page.getByText(words.notRemoved).waitFor();
      await page.locator(".cm-content").getByText("fourth").first().waitFor();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await remove();
      await page.waitForURL(/\/prompts$/);
      await assert.rejects(stored(), /404/);
    });
  });
}
