import assert from "node:assert/strict";
import { test } from "node:test";
import { type Page } from "playwright-core";
import { assertAccessible, assertFits, type Look, waitForPage, withPage } from "./support/browser.ts";
import { allScreens, pathOf } from "./support/screens.ts";
import { Studio } from "./support/server.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage({ atOnce: true });

/** Pairs of looks that differ in everything; screens take turns with them. */
const LOOKS = [
  [
    { language: "en", theme: "light", width: 1280 },
    { language: "zh", theme: "dark", width: 390 },
  ],
  [
    { language: "zh", theme: "light", width: 1280 },
    { language: "en", theme: "dark", width: 390 },
  ],
] as const;

/** Chooses the language in another tab, and the theme and the width of the system. */
async function changeLook(page: Page, look: Required<Omit<Look, "height">>): Promise<void> {
  await page.setViewportSize({ width: look.width, height: 900 });
  await page.emulateMedia({ colorScheme: look.theme });
  await page.evaluate((language) => {
    const key = "tambour.preferences";
    localStorage.setItem(key, JSON.stringify({ language }));
    dispatchEvent(new StorageEvent("storage", { key }));
  }, look.language);
}

async function assertReadable(page: Page, look: Look): Promise<void> {
  await page.locator(`html[lang="${look.language}"][data-theme="${look.theme}"]`).waitFor();
  await assertFits(page);
  await assertAccessible(page);
}

for (const [index, screen] of (await allScreens()).entries()) {
  test(`${screen.name} opens, fits and can be read by everybody`, async () => {
    const path = await pathOf(screen, studio);
    const [first, second] = LOOKS[index % 2 === 0 ? 0 : 1];
    await withPage(browser, studio, { ...first, allow: screen.allow ?? [] }, async (page) => {
      await page.goto(path);
      await waitForPage(page);
      await screen.act?.(page, studio);
      await assertReadable(page, first);
      await changeLook(page, second);
      await assertReadable(page, second);
    });
  });
}

test("every page is reached by the navigation", async () => {
  const names = ["Overview", "Scripts", "Run", "Live", "Inspect", "Conversations", "Prompts", "Settings"];
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/");
    for (const name of names) {
      await page.getByRole("navigation").getByRole("link", { name }).click();
      await page.getByRole("heading", { level: 1, name }).waitFor();
      assert.match(await page.title(), new RegExp(`^${name}`));
    }
  });
});

test("language and theme are chosen, hold in other tabs, and stay", async () => {
  await withPage(browser, studio, {}, async (page) => {
    const otherTab = await page.context().newPage();
    await otherTab.goto("/settings");
    await otherTab.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    await page.goto("/scripts");
    await page.getByText("中文").click();
    await page.getByRole("heading", { level: 1, name: "脚本" }).waitFor();
    await page.getByText("深色").click();
    await otherTab.getByRole("heading", { level: 1, name: "设置" }).waitFor();
    await otherTab.locator('html[lang="zh"][data-theme="dark"]').waitFor();
    await page.reload();
    await page.getByRole("heading", { level: 1, name: "脚本" }).waitFor();
    assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  });
});

test("the menu opens on a narrow screen, by keyboard", async () => {
  await withPage(browser, studio, { width: 390, language: "zh" }, async (page) => {
    await page.goto("/");
    await page.getByRole("button", { name: "打开菜单" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").getByRole("link", { name: "设置" }).click();
    await page.getByRole("heading", { level: 1, name: "设置" }).waitFor();
  });
});

test("a server that goes away is told, and found again", async () => {
  const own = await Studio.start();
  try {
    await withPage(browser, own, { allow: [/Failed to load resource/] }, async (page) => {
      await page.goto("/");
      await waitForPage(page);
      await own.stopServer();
      await page.evaluate(() => window.dispatchEvent(new Event("online")));
      await page.getByText("The server cannot be reached.").waitFor();
      await own.startServer();
      await page.getByRole("button", { name: "Try again now" }).click();
      await page.getByText("The server cannot be reached.").waitFor({ state: "hidden" });
    });
  } finally {
    await own.stop();
  }
});
