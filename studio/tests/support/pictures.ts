/** `npm run pictures [-- FOLDER]`: the pictures of the studio that the README shows, into `docs/pictures/`. */
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Page } from "playwright-core";
import { openBrowser, waitForPage, withPage } from "./browser.ts";
import { allScreens, pathOf } from "./screens.ts";
import { Studio } from "./server.ts";

/** Largest size of a picture of the README, in bytes. */
const MAX_BYTES = 250_000;

type Picture = {
  file: string;
  /** Screen of `tests/screens`. */
  screen: string;
  /** Actions on the page after those of the screen itself. */
  act?: (page: Page) => Promise<void>;
};

const PICTURES: readonly Picture[] = [
  { file: "studio-script.png", screen: "scripts-english" },
  {
    file: "studio-live.png",
    screen: "live-message",
    // The server's notices about the reply disappear by themselves.
    act: async (page) => page.locator(".ant-message-notice").first().waitFor({ state: "detached" }),
  },
];

const folder = process.argv[2] ?? join(import.meta.dirname, "../../../docs/pictures");
mkdirSync(folder, { recursive: true });
const screens = await allScreens();
const studio = await Studio.start();
await studio.request("PUT", "/api/v1/settings", { text_language: "en" });
const browser = await openBrowser();
try {
  for (const { file, screen: name, act } of PICTURES) {
    const screen = screens.find((one) => one.name === name);
    if (screen === undefined) throw new Error(`there is no screen ${name}`);
    const path = await pathOf(screen, studio);
    await withPage(browser, studio, { language: "en", width: 1360, height: 860 }, async (page) => {
      await page.goto(path);
      await waitForPage(page);
      await screen.act?.(page, studio);
      await act?.(page);
      await page.screenshot({ path: join(folder, file) });
    });
    const { size } = statSync(join(folder, file));
    if (size > MAX_BYTES) throw new Error(`${file} has ${size} bytes, at most ${MAX_BYTES}`);
    console.log(`${file}: ${Math.round(size / 1000)} kB`);
  }
} finally {
  await browser.close();
  await studio.stop();
}
