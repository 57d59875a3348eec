// The playground in a browser: built into a folder of its own, opened from the disk and from a static host.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";
import { EXAMPLES } from "../playground/examples.js";
import { fragmentOf, valueOf } from "../playground/share.js";
import { LANGUAGES, TEXTS, textsIn } from "../playground/texts.js";

const hasModule = existsSync(new URL("../wasm/decoder.wasm", import.meta.url));
/** A run of the tests with another engine, by a condition of the package: the page has an engine of its own. */
const isRepetition = process.execArgv.some((argument) => argument.includes("conditions"));
const skip = !hasModule ? "wasm/decoder.wasm is missing: build the WebAssembly modules" : isRepetition && "the page is tested by `npm test`";

const PLACES = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

/** Policy of a host that trusts no page: neither inline code nor connections. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src blob:; style-src 'self'; img-src 'self'; frame-ancestors 'none'";

const BROKEN = `<thinking>
<phase id="1">
<title>目标 🙂</title>
More depth.
</phase>
<phase id="1">
<title>Plan</title>
Three steps.
</phase>
</thinking>
<final>
Warm up **first**.
<!-- <serp_queries>
["squat depth"]
</serp_queries> -->
</final>
`;

describe("playground", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "tambour-playground-"));
  let browser;
  let server;
  let hosted;
  const onDisk = pathToFileURL(join(folder, "index.html")).href;

  before(async () => {
    const { writePlayground } = await import("../scripts/playground.mjs");
    await writePlayground(pathToFileURL(`${folder}/`));
    server = createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url, "http://localhost");
      const file = join(folder, pathname === "/" ? "index.html" : pathname.slice(1));
      if (!existsSync(file)) return response.writeHead(404).end();
      response.setHeader("content-type", TYPES[extname(file)]);
      const without = searchParams.get("without") ?? "";
      response.setHeader("content-security-policy", POLICY.replace(without, ""));
      return response.end(readFileSync(file));
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    hosted = `http://127.0.0.1:${server.address().port}/`;
    const executablePath = process.env.CHROMIUM ?? PLACES.find((place) => existsSync(place));
    if (executablePath === undefined) throw new Error("Chromium is missing: install it, or name it with CHROMIUM");
    // The sandbox of Chromium does not work for root.
    browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
  });

  after(async () => {
    await browser?.close();
    server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Opens the page; fails if it writes to the console, throws, or asks for anything but its own files. */
  async function withPage(options, act) {
    const { address = hosted, language = "en", theme = "light", width = 1280, path = "" } = options;
    const context = await browser.newContext({
      colorScheme: theme,
      locale: language === "zh" ? "zh-CN" : "en-GB",
      viewport: { width, height: 900 },
      reducedMotion: "reduce",
      permissions: address === hosted ? ["clipboard-read", "clipboard-write"] : [],
    });
    context.setDefaultTimeout(30_000);
    const page = await context.newPage();
    const problems = [];
    const requests = [];
    page.on("console", (message) => problems.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(`error: ${error.stack}`));
    page.on("request", (request) => requests.push(request.url()));
    try {
      await page.goto(address + path);
      await page.locator("#verdict .badge").first().waitFor();
      await act(page);
      const base = address.replace("index.html", "");
      const own = ["", "index.html", "playground.css", "playground.js", "favicon.svg"].map((name) => base + name);
      assert.deepEqual(requests.filter((url) => !own.includes(url.split("#")[0]) && !url.startsWith("blob:")), []);
      assert.deepEqual(problems, []);
    } finally {
      await context.close();
    }
  }

  const type = (page, text) => page.locator("#reply").fill(text);
  const finding = (page, code) => page.locator("#findings").getByRole("button", { name: new RegExp(code) });

  async function assertAccessible(page) {
    const { violations } = await new AxeBuilder({ page }).options({ resultTypes: ["violations"] }).setLegacyMode().analyze();
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" | ")}`), []);
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    assert.ok(beyond <= 0, `the page is ${beyond} px wider than the window`);
  }

  test("a broken reply is read as it is typed, and the place of a finding is marked", async () => {
    await withPage({}, async (page) => {
      await page.locator("#reply").fill("");
      await page.getByText("Nothing to read yet.").waitFor();
      await page.locator("#reply").pressSequentially(BROKEN.slice(0, 40));
      await page.locator("#verdict").getByText("Fails").waitFor();
      await type(page, BROKEN);
      await finding(page, "phase_id_not_increasing").click();
      const chosen = page.locator("#findings button[aria-pressed=true]");
      assert.match(await chosen.innerText(), /Error\s+phase_id_not_increasing\s+T-032\s+Line 6, column 1\s+phase 1 comes after phase 1/);
      // Characters of two, three and four bytes stand before the place.
      assert.equal(await page.locator(".marks .chosen").allInnerTexts().then((texts) => texts.join("")), '<phase id="1">');
      const selected = await page.locator("#reply").evaluate((field) => field.value.slice(field.selectionStart, field.selectionEnd));
      assert.equal(selected, '<phase id="1">');
      assert.equal(await page.locator("#answer .prose").last().innerText(), "Warm up **first**.");
      assert.equal(await page.locator("#answer details.thinking").getAttribute("open"), null);
      await page.locator("#answer details.thinking > summary").click();
      await page.locator("#answer").getByText("目标 🙂").waitFor();
      const names = await page.locator("#events .name").allInnerTexts();
      assert.deepEqual(names, [
        "thinking_start", "phase_start", "phase_delta", "phase_start", "phase_delta", "thinking_end", "final_delta",
        "serp_queries", "final_end", "completed",
      ]);
      await page.locator("#events summary", { hasText: "serp_queries" }).click();
      assert.deepEqual(JSON.parse(await page.locator("#events details[open] pre").innerText()), { queries: ["squat depth"] });
      assert.match(await page.locator("#repaired").innerText(), /<phase id="2">/);
      await page.getByRole("button", { name: "Copy", exact: true }).click();
      await page.getByRole("button", { name: "Copied" }).waitFor();
      assert.match(await page.evaluate(() => navigator.clipboard.readText()), /<phase id="2">/);
    });
  });

  test("the page works from the disk, and asks for nothing but its own files", async () => {
    await withPage({ address: onDisk }, async (page) => {
      await type(page, BROKEN);
      await finding(page, "phase_id_not_increasing").waitFor();
    });
  });

  test("a host that forbids WebAssembly, or threads, is told about", async () => {
    for (const without of ["'wasm-unsafe-eval'", "worker-src blob:;"]) {
      const context = await browser.newContext({ locale: "en-GB" });
      const page = await context.newPage();
      await page.goto(`${hosted}?without=${encodeURIComponent(without)}`);
      await page.getByRole("alert").getByText("WebAssembly could not be loaded").waitFor();
      await context.close();
    }
  });

  test("every example is read; the broken ones have findings, the correct ones pass", async () => {
    await withPage({}, async (page) => {
      for (const { id, group, text } of EXAMPLES) {
        await page.locator("#example").selectOption(id);
        assert.equal(await page.locator("#reply").inputValue(), text);
        await page.locator(".results[aria-busy=false]").waitFor();
        await page.locator("#verdict").getByText(group === "broken" ? "Fails" : "Passes").waitFor();
        assert.equal(await page.locator("#problem").isVisible(), false);
        assert.equal((await page.locator("button.finding").count()) > 0, group === "broken", id);
      }
    });
  });

  test("typed text comes back after an example", async () => {
    await withPage({}, async (page) => {
      await type(page, "Mine.");
      await page.locator("#example").selectOption("filament");
      await page.locator("#findings").getByText("html_forbidden").waitFor();
      await page.locator("#example").selectOption("");
      assert.equal(await page.locator("#reply").inputValue(), "Mine.");
    });
  });

  test("dialect, profile, finish reason, options and tools apply", async () => {
    await withPage({}, async (page) => {
      await type(page, '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>');
      await page.getByLabel("Dialect").selectOption("toolcall");
      await page.locator("#verdict").getByText("toolcall").waitFor();
      await page.getByText("Options and tools").click();
      await page.getByLabel("Tools (JSON").fill('{"weather": {"type": "object"}}');
      await page.locator("#events").getByText("tool_call", { exact: true }).waitFor();
      await page.getByLabel("Options (JSON)").fill("{");
      await page.locator("#options-problem").waitFor();
      assert.equal(await page.getByLabel("Options (JSON)").getAttribute("aria-invalid"), "true");
      await page.getByLabel("Options (JSON)").fill('{"nonsense": 1}');
      await page.getByRole("alert").getByText(/unknown option `nonsense`/).waitFor();
      await page.getByLabel("Options (JSON)").fill("");
      await page.getByLabel("Tools (JSON").fill("");
      await page.getByLabel("Dialect").selectOption("auto");
      await type(page, BROKEN);
      await page.locator("#verdict").getByText("thinkingml").waitFor();
      await page.getByLabel("Profile").selectOption("lenient");
      await page.locator("#verdict").getByText("Passes").waitFor();
      await page.getByLabel("Finish reason").selectOption("length");
      await page.locator("#answer").getByText("The reply is cut off.").waitFor();
    });
  });

  test("a stream is read in pieces, replayed and stopped", async () => {
    await withPage({}, async (page) => {
      await type(page, BROKEN);
      const events = page.locator("#events .name");
      await page.locator("#events").getByText("serp_queries").waitFor();
      const whole = await events.count();
      await page.getByLabel("Read as if it streamed").check();
      await page.waitForFunction((count) => document.querySelectorAll("#events .name").length > count, whole);
      const streamed = await events.count();
      await page.getByRole("button", { name: "Replay" }).click();
      await page.locator("#events-count").getByText(/^Replaying event \d+ of /).waitFor();
      assert.ok((await events.count()) < streamed);
      const read = await page.locator(".marks .read").innerText();
      assert.ok(BROKEN.replaceAll("\n", "").startsWith(read.replaceAll("\n", "")));
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByRole("button", { name: "Replay" }).waitFor();
      assert.equal(await events.count(), streamed);
      assert.equal(await page.locator(".marks .read").count(), 0);
    });
  });

  test("a replay ends by itself with everything shown", async () => {
    await withPage({}, async (page) => {
      await page.locator("#example").selectOption("plain-correct");
      await page.locator("#verdict").getByText("Passes").waitFor();
      const before = await page.locator("#events").innerText();
      await page.getByRole("button", { name: "Replay" }).click();
      await page.getByRole("button", { name: "Stop" }).waitFor();
      await page.getByRole("button", { name: "Replay" }).waitFor();
      assert.equal(await page.locator("#events").innerText(), before);
    });
  });

  for (const [name, address] of [["a host", () => hosted], ["the disk", () => onDisk]]) {
    test(`a link holds the whole input (${name})`, async () => {
      let link = "";
      await withPage({ address: address() }, async (page) => {
        await type(page, BROKEN);
        await page.getByLabel("Dialect").selectOption("thinkingml");
        await page.getByLabel("Finish reason").selectOption("");
        await page.getByLabel("Read as if it streamed").check();
        await page.getByLabel("Characters a piece").fill("7");
        await page.getByText("Options and tools").click();
        await page.getByLabel("Options (JSON)").fill('{"limits.findings": 2}');
        await page.getByRole("button", { name: "Copy a link to this" }).click();
        await page.locator("#share-note").getByText(/link/).waitFor();
        link = page.url();
        if (address() === hosted) assert.equal(await page.evaluate(() => navigator.clipboard.readText()), link);
      });
      assert.match(link, /#1=[\w-]+$/);
      await withPage({ address: address(), path: link.slice(link.indexOf("#")) }, async (page) => {
        assert.equal(await page.locator("#reply").inputValue(), BROKEN);
        assert.equal(await page.getByLabel("Dialect").inputValue(), "thinkingml");
        assert.equal(await page.getByLabel("Finish reason").inputValue(), "");
        assert.equal(await page.getByLabel("Read as if it streamed").isChecked(), true);
        assert.equal(await page.getByLabel("Characters a piece").inputValue(), "7");
        assert.equal(await page.getByLabel("Options (JSON)").inputValue(), '{"limits.findings": 2}');
        await finding(page, "phase_id_not_increasing").waitFor();
      });
    });
  }

  test("a damaged link, or one that unpacks to too much, is refused", async () => {
    await withPage({ path: "#1=xxxx" }, async (page) => {
      await page.getByText("The link is damaged").waitFor();
      await finding(page, "phase_nested").waitFor();
    });
    const bomb = await fragmentOf({ text: "a".repeat(13_000_000) });
    assert.ok(bomb.length < 100_000);
    assert.equal(await valueOf(bomb), null);
    assert.equal(await valueOf("#0=W10"), null, "an array is no input");
    assert.deepEqual(await valueOf(await fragmentOf({ text: "字" })), { text: "字" });
  });

  test("the language changes everything on the page, and stays", async () => {
    await withPage({ language: "zh" }, async (page) => {
      await page.locator("#verdict").getByText("未通过").waitFor();
      await page.locator("#example").selectOption("json_value");
      await page.locator("#events").getByText("思考过程").waitFor();
      await page.getByLabel("语言").selectOption("en");
      await page.locator("#verdict").getByText("Fails").waitFor();
      await page.locator("#events").getByText('"title":"Thinking"').waitFor();
      assert.equal(await page.locator("html").getAttribute("lang"), "en");
      const shown = await page.locator("body").innerText();
      assert.deepEqual(shown.replace("中文", "").match(/\p{Script=Han}+/gu), null);
      await page.reload();
      await page.locator("#verdict").getByText("Fails").waitFor();
    });
  });

  test("the keyboard alone reaches all: text, settings, findings, events, replay", async () => {
    await withPage({}, async (page) => {
      const tab = async (selector) => {
        for (let count = 0; count < 40; count += 1) {
          await page.keyboard.press("Tab");
          if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
        }
        assert.fail(`the keyboard does not reach ${selector}`);
      };
      await tab(".skip");
      await tab("#reply");
      await page.keyboard.press("ControlOrMeta+A");
      await page.keyboard.insertText(BROKEN);
      await finding(page, "phase_id_not_increasing").waitFor();
      await tab('select[name="profile"]');
      await page.keyboard.press("ArrowDown");
      await page.locator("#verdict").getByText("Passes").waitFor();
      await tab('input[name="stream"]');
      await page.keyboard.press("Space");
      await page.waitForFunction(() => document.querySelectorAll("#events .name").length > 12);
      await tab("#replay");
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Stop" }).waitFor();
      await page.keyboard.press("Enter");
      await page.getByRole("button", { name: "Replay" }).waitFor();
      await tab("#answer summary");
      await page.keyboard.press("Enter");
      await page.locator("#answer details[open]").waitFor();
      await tab("button.finding");
      await page.keyboard.press("Enter");
      await page.locator(".marks .chosen").first().waitFor();
      await tab("#events summary");
      await page.keyboard.press("Enter");
      await page.locator("#events details[open] pre").waitFor();
      await tab("#copy");
    });
  });

  test("a megabyte leaves the page usable: few events are shown, and newer text wins", async () => {
    await withPage({}, async (page) => {
      const large = `<thinking>\n<phase id="1">\n<title>T</title>\nx\n</phase>\n</thinking>\n<final>\n${"<b>word</b> ".repeat(95_000)}\n</final>\n`;
      assert.ok(large.length > 1_000_000);
      await page.getByLabel("Read as if it streamed").check();
      await page.getByLabel("Characters a piece").fill("1000");
      await type(page, large);
      await page.locator("#events").getByText(/more events\.$/).waitFor({ timeout: 120_000 });
      assert.equal(await page.locator("#events .name").count(), 500);
      assert.match(await page.locator("#answer").innerText(), /more characters\)/);
      // One character a piece takes long; the page goes on reading text that is typed meanwhile.
      await page.getByLabel("Characters a piece").fill("1");
      await page.locator("#verdict").getByText(/^Reading, /).waitFor({ timeout: 120_000 });
      await type(page, BROKEN);
      await finding(page, "phase_id_not_increasing").waitFor();
      assert.match(await page.locator("#size").innerText(), /^\d{3} characters$/);
    });
  });

  test("of a text of too many lines, only the beginning is pasted", async () => {
    await withPage({}, async (page) => {
      await page.locator("#reply").fill("");
      await page.evaluate(() => navigator.clipboard.writeText("\n".repeat(40_000)));
      await page.locator("#reply").focus();
      await page.keyboard.press("ControlOrMeta+V");
      await page.getByText("its first 20,000 lines were taken").waitFor();
      assert.equal((await page.locator("#reply").inputValue()).length, 19_999);
    });
  });

  test("what a model wrote is text, never markup", async () => {
    const payload = '<img src=x onerror="window.__hacked = 1"><script>window.__hacked = 2</script>';
    await withPage({}, async (page) => {
      await type(page, `<thinking>\n<phase id="1" onerror="x">\n<title>${payload}</title>\n${payload}\n</phase>\n</thinking>\n<final>\n${payload}\n</final>\n`);
      await page.locator("#answer").getByText("onerror").last().waitFor();
      await page.locator("#answer details.thinking > summary").click();
      assert.equal(await page.evaluate(() => window.__hacked), undefined);
      assert.equal(await page.locator("main img, main script").count(), 0);
    });
  });

  for (const [theme, width, language] of [["light", 1280, "en"], ["dark", 1280, "zh"], ["light", 360, "zh"], ["dark", 360, "en"]]) {
    test(`the page has no barrier and fits (${theme}, ${width} px, ${language})`, async () => {
      await withPage({ theme, width, language }, async (page) => {
        await page.locator("#example").selectOption("filament");
        await page.locator("#findings").getByText("html_forbidden").waitFor();
        await page.locator("details.more > summary").click();
        for (const summary of await page.locator("#answer summary").all()) await summary.click();
        await page.locator("button.finding").first().click();
        await page.locator("#events summary").first().click();
        await assertAccessible(page);
        await type(page, `<final>\n${"很".repeat(400)}${"w".repeat(400)}\n</final>`);
        await page.locator("#findings").getByText("serp_block_missing").waitFor();
        await assertAccessible(page);
      });
    });
  }
});

test("both languages have all texts, and numbers their forms", () => {
  const valuesIn = (text) => [...new Set(text.match(/(?<=\{)\w+/g))].sort();
  for (const [key, texts] of Object.entries(TEXTS)) {
    assert.deepEqual(Object.keys(texts).sort(), [...LANGUAGES].sort(), key);
    for (const language of LANGUAGES) assert.notEqual(texts[language].trim(), "", key);
    assert.deepEqual(valuesIn(texts.zh), valuesIn(texts.en), key);
  }
  assert.equal(textsIn("en")("size", { count: 1 }), "1 character");
  assert.equal(textsIn("en")("size", { count: 12_000 }), "12,000 characters");
  assert.equal(textsIn("zh")("size", { count: 12_000 }), "12,000 个字符");
});
