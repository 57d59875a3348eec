import { after } from "node:test";
import { type Browser } from "playwright-core";
import { openBrowser } from "./browser.ts";
import { type ServerOptions, Studio } from "./server.ts";

/** Browser and server for the tests of one file, which end with them. */
export async function openStage(options: ServerOptions = {}): Promise<{ browser: Browser; studio: Studio }> {
  const [browser, studio] = await Promise.all([openBrowser(), Studio.start(options)]);
  after(async () => {
    await browser.close();
    await studio.stop();
  });
  return { browser, studio };
}
