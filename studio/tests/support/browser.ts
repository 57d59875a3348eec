import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { AxeBuilder } from "@axe-core/playwright";
import { type Browser, chromium, type Page } from "playwright-core";
import { type Studio } from "./server.ts";

export type Look = {
  language?: "zh" | "en";
  theme?: "light" | "dark";
  width?: number;
  height?: number;
};

type PageOptions = Look & {
  /** Errors on the console that the test provokes, such as `/status of 412/`. */
  allow?: readonly RegExp[];
};

const PLACES = [
  // Chromium without its windows, which costs less.
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env["CHROMIUM"] ?? PLACES.find((place) => existsSync(place));
  if (executablePath === undefined) throw new Error("Chromium is missing: install it, or name it with CHROMIUM");
  // The sandbox of Chromium does not work for root.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

/** Opens a page of the studio; fails if it writes an error to the console or contacts another host. */
export async function withPage(
  browser: Browser,
  studio: Pick<Studio, "url">,
  options: PageOptions,
  act: (page: Page) => Promise<void>,
): Promise<void> {
  const { language = "en", theme = "light", width = 1280, height = 900, allow = [] } = options;
  const context = await browser.newContext({
    baseURL: studio.url,
    locale: language === "zh" ? "zh-CN" : "en-GB",
    colorScheme: theme,
    viewport: { width, height },
    reducedMotion: "reduce",
  });
  // Tests run in parallel, also on machines of two cores.
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !allow.some((one) => one.test(text))) problems.push(`console: ${text}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.stack ?? error.message}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (/^https?:$/.test(url.protocol) && url.origin !== studio.url) problems.push(`foreign request: ${url.href}`);
  });
  try {
    await act(page);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

/** Waits until a page has loaded its data, and the network is idle. */
export async function waitForPage(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).first().waitFor();
  await page.waitForLoadState("networkidle");
}

/** Fails if axe finds a serious problem. */
export async function assertAccessible(page: Page, exclude: readonly string[] = []): Promise<void> {
  // Listing the rules that pass would take half of the time, and a second page for the results the other half; that page
  // is only of use to frames of other origins, which the studio has none of.
  assert.equal(page.frames().length, 1);
  let axe = new AxeBuilder({ page }).options({ resultTypes: ["violations"] }).setLegacyMode();
  for (const selector of exclude) axe = axe.exclude(selector);
  const { violations } = await axe.analyze();
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const messages = serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary ?? ""}`).join(" | ")}`);
  assert.deepEqual(messages, []);
}

/** Fails if a page is wider than its window. */
export async function assertFits(page: Page): Promise<void> {
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(beyond <= 0, `the page is ${beyond} px wider than the window`);
}

/** Text of the downloaded file. */
export async function downloadOf(page: Page, act: () => Promise<void>): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent("download"), act()]);
  return readFileSync(await download.path(), "utf8");
}
