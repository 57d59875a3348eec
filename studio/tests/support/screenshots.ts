/**
 * `npm run screenshots [-- WORD...]`: a picture of each screen in both themes, widths and languages, into `screenshots/`.
 * With words only the screens whose name has one of them.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openBrowser, waitForPage, withPage } from "./browser.ts";
import { allScreens, pathOf } from "./screens.ts";
import { Studio } from "./server.ts";

const folder = join(import.meta.dirname, "../../screenshots");
mkdirSync(folder, { recursive: true });
const words = process.argv.slice(2);
const screens = (await allScreens()).filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
const studio = await Studio.start();
const browser = await openBrowser();
try {
  for (const screen of screens) {
    const path = await pathOf(screen, studio);
    for (const language of ["zh", "en"] as const) {
      for (const theme of ["light", "dark"] as const) {
        for (const width of [1440, 768, 390]) {
          const look = { language, theme, width, height: width === 390 ? 844 : 900, allow: [/./] };
          await withPage(browser, studio, look, async (page) => {
            await page.goto(path);
            await waitForPage(page);
            await screen.act?.(page, studio);
            const file = `${screen.name}-${language}-${theme}-${width}.png`;
            await page.screenshot({ path: join(folder, file) });
            console.log(file);
          });
        }
      }
    }
  }
} finally {
  await browser.close();
  await studio.stop();
}
