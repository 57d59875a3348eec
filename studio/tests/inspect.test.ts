import assert from "node:assert/strict";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Browser, type Page } from "playwright-core";
import { assertAccessible, assertFits, downloadOf, openBrowser, withPage } from "./support/browser.ts";
import { emptyRate, minRate, scrollingRate } from "./support/frames.ts";
import { Studio } from "./support/server.ts";

let browser: Browser;
let studio: Studio;
const folder = mkdtempSync(join(tmpdir(), "tambour-records-"));

before(async () => {
  [browser, studio] = await Promise.all([openBrowser(), Studio.start()]);
});

after(async () => {
  await browser.close();
  await studio.stop();
  rmSync(folder, { recursive: true });
});

const NAMES = {
  en: {
    text: "Reply, transcript or JSONL", check: "Check", fails: "Fails", passes: "Passes", before: "Before and after",
    shown: "As shown", byRule: "By rule", findings: "Findings", export: "Export", aboutRule: "Rule T-032",
    raw: "Raw text", tryExample: "Check this example", broken: "Broken", records: "Records", transcript: "Transcript",
  },
  zh: {
    text: "回复、流记录或 JSONL", check: "检查", fails: "未通过", passes: "通过", before: "修复前后",
    shown: "呈现", byRule: "按规则", findings: "检查结果", export: "导出", aboutRule: "规则 T-032",
    raw: "原始文本", tryExample: "检查此例子", broken: "错误的例子", records: "记录", transcript: "流记录",
  },
} as const;

type Names = (typeof NAMES)["en" | "zh"];

const BROKEN = `<thinking>
<phase id="1">
<title>目标</title>
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

async function check(page: Page, names: Names, text: string): Promise<void> {
  await page.getByRole("textbox", { name: names.text }).fill(text);
  await page.getByRole("button", { name: names.check, exact: true }).click();
}

/** Text of the file that a click downloads. */
async function exportText(page: Page, names: Names, format: string): Promise<string> {
  await page.getByRole("button", { name: names.export }).click();
  return downloadOf(page, () => page.getByRole("menuitem", { name: format, exact: true }).click());
}

for (const language of ["zh", "en"] as const) {
  const names = NAMES[language];

  test(`a broken reply is marked, repaired and explained (${language})`, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/inspect");
      await check(page, names, BROKEN);
      await page.getByText(names.fails, { exact: true }).waitFor();
      const raw = page.getByRole("list", { name: names.raw });
      await raw.getByRole("button", { name: /phase_id_not_increasing/ }).click();
      await page.getByRole("button", { name: "phase_id_not_increasing", exact: true, pressed: true }).waitFor();
      await assertAccessible(page);
      await assertFits(page);
      await page.getByText(names.before, { exact: true }).click();
      await page.getByText('<phase id="2">').waitFor();
      await page.getByText(names.shown, { exact: true }).click();
      await page.locator("strong", { hasText: "first" }).waitFor();
      await page.getByText(names.byRule, { exact: true }).click();
      await page.getByRole("link", { name: "phase_id_not_increasing" }).click();
      // The page of the rule shows its examples; the broken one breaks the rule.
      await page.getByRole("heading", { level: 1, name: "phase_id_not_increasing" }).waitFor();
      await page.getByRole("region", { name: names.broken }).getByText("A deeper squat.").waitFor();
      await assertAccessible(page);
      await page.getByRole("button", { name: names.tryExample }).first().click();
      await page.getByText(names.fails, { exact: true }).waitFor();
      await page.getByRole("button", { name: names.tryExample }).waitFor({ state: "hidden" });
    });
  });

  test(`findings are exported as JSON, SARIF and CSV (${language})`, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/inspect");
      await check(page, names, BROKEN);
      await page.getByText(names.fails, { exact: true }).waitFor();
      const [text] = JSON.parse(await exportText(page, names, "JSON")) as { verdict: string; first_error: string; findings: { code: string }[] }[];
      assert.equal(text?.verdict, "fail");
      assert.equal(text.first_error, "phase_id_not_increasing");
      const log = JSON.parse(await exportText(page, names, "SARIF 2.1.0")) as {
        version: string;
        runs: { results: { ruleId: string; ruleIndex: number; locations: { physicalLocation: { region: { startLine: number; startColumn: number } } }[] }[]; tool: { driver: { rules: { id: string; shortDescription?: { text: string } }[] } } }[];
      };
      const run = log.runs[0];
      const result = run?.results.find(({ ruleId }) => ruleId === "T-032/phase_id_not_increasing");
      assert.equal(log.version, "2.1.0");
      assert.equal(result?.locations[0]?.physicalLocation.region.startLine, 6);
      const rule = run?.tool.driver.rules[result.ruleIndex];
      assert.equal(rule?.id, result.ruleId);
      assert.equal(rule.shortDescription?.text, "The ids of the phases increase.");
      const csv = await exportText(page, names, "CSV");
      assert.match(csv, /^\uFEFFpath,record,id,model,contract,verdict,rule,code,severity,line,column,/);
      assert.match(csv, /\r\nreply\.txt,,,,thinkingml,fail,T-032,phase_id_not_increasing,error,6,1,/);
    });
  });

  test(`a transcript is held to the order of its events (${language})`, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/inspect");
      await check(page, names, 'event: thinking_start\ndata: {}\n\nevent: final_delta\ndata: {"text":"x"}\n\nevent: final_end\ndata: {}\n\n');
      await page.getByText(names.transcript, { exact: true }).waitFor();
      await page.getByText(names.fails, { exact: true }).waitFor();
    });
  });
}

test("a message is opened by its address, and a reply without a fault passes", async () => {
  const reply = { text: "x", model: "0f79820f792a", dialect: "filament", output_protocol: "jsonseq_v1", wait: true };
  const { message_id: id } = (await studio.request("POST", "/api/v1/messages", reply)) as { message_id: string };
  await withPage(browser, studio, {}, async (page) => {
    await page.goto(`/inspect?message=${id}`);
    await page.getByText("Passes", { exact: true }).waitFor();
    await page.getByText("Before and after", { exact: true }).click();
    await page.getByText("Nothing had to be changed.").waitFor();
  });
});

test("what is looked into runs nothing and asks no other host for anything", async () => {
  const payload = '<script>window.__hacked = 1</script><img src=x onerror="window.__hacked = 2">[a](javascript:window.__hacked=3)![p](https://evil.example/p.png)';
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/inspect");
    // A finding repeats the name of the tag.
    await check(page, NAMES.en, `<thinking>\n<phase id="1" onerror="window.__hacked=4">\n<title>${payload}</title>\n${payload}\n</phase>\n</thinking>\n<final>\n${payload}\n</final>\n`);
    await page.getByText(/^(?:Fails|Passes)$/).waitFor();
    for (const part of [/^Events \d/, /^As shown$/, /^Before and after$/, /^By rule$/, /^Findings \d/]) await page.getByText(part).click();
    const record = { id: payload, model: payload, reply: payload, findings: [{ rule: payload, code: payload, severity: "error", span: { start: 0, end: 5 }, line: 1, column: 1, message: payload, repair: payload }] };
    await page.getByRole("textbox", { name: NAMES.en.text }).fill(`${JSON.stringify(record)}\n${JSON.stringify(record)}\n`);
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByRole("option").first().click();
    await page.getByRole("region", { name: "Record 1" }).getByText(/\d errors?/).waitFor();
    assert.equal(await page.evaluate(() => (window as { __hacked?: number }).__hacked), undefined);
    assert.equal(await page.locator("main script, main iframe, main img").count(), 0);
    assert.equal(await page.locator('main a[href^="javascript:"]').count(), 0);
  });
});

const COUNT = 100_000;
const MODELS = ["small-1b", "middle-8b", "large-70b"];

/** Writes a file of records in the form of exports; every tenth has no findings and is unchecked. */
function writeRecords(path: string): void {
  const filler = "The quick brown fox jumps over the lazy dog. ".repeat(40);
  const file = openSync(path, "w");
  let lines: string[] = [];
  for (let at = 0; at < COUNT; at += 1) {
    const reply = `<thinking>\n<phase id="1">\n<title>Step ${at}</title>\n${filler}\n</phase>\n</thinking>\n<final>\nAnswer ${at}.\n</final>\n`;
    const severity = at % 3 === 0 ? "error" : "warning";
    const finding = { rule: "T-040", code: "serp_block_missing", severity, span: { start: 10, end: 20 }, line: 1, column: 1, message: "the queries block is missing", repair: severity === "error" ? null : "no `serp_queries` event" };
    const findings = at % 10 === 0 ? {} : { findings: at % 4 === 0 ? [] : [finding] };
    lines.push(`${JSON.stringify({ id: `record-${at}`, model: MODELS[at % 3], protocol: "thinkingml", reply, finish_reason: "stop", ...findings })}\n`);
    if (lines.length === 2000) {
      writeSync(file, lines.join(""));
      lines = [];
    }
  }
  closeSync(file);
}

/** Peak memory of a page's process, with its workers; the present use where the system does not report it. */
async function peakMemory(page: Page): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = (await session.send("SystemInfo.getProcessInfo")) as { processInfo: { type: string; id: number }[] };
  const most = processInfo
    .filter(({ type, id }) => type === "renderer" && existsSync(`/proc/${id}/status`))
    .map(({ id }) => Number(/VmHWM:\s*(\d+) kB/.exec(readFileSync(`/proc/${id}/status`, "utf8"))?.[1] ?? 0) * 1024);
  if (most.length > 0) return Math.max(...most);
  const own = await page.context().newCDPSession(page);
  const { usedSize } = (await own.send("Runtime.getHeapUsage")) as { usedSize: number };
  return usedSize;
}

test("a file of 100,000 records is read, filtered, scrolled, checked in part and exported", async () => {
  const path = join(folder, "records.jsonl");
  writeRecords(path);
  const size = statSync(path).size;
  assert.ok(size > 190_000_000, `${size} bytes`);
  await withPage(browser, studio, {}, async (page) => {
    page.setDefaultTimeout(120_000);
    await page.goto("/inspect");
    const start = Date.now();
    await page.locator("input[type=file]").setInputFiles(path);
    // Progress is shown, and reading can be stopped.
    await page.getByRole("progressbar", { name: "Progress" }).waitFor();
    await page.getByText("100,000 of 100,000 records").waitFor();
    await page.getByRole("progressbar").waitFor({ state: "hidden" });
    console.log(`read ${Math.round(size / 1e6)} MB in ${Date.now() - start} ms`);
    // The best of up to three measurements counts for both, because other work on the machine slows the page.
    let rate = 0;
    let empty = 0;
    for (let time = 0; time < 3 && (time === 0 || rate < minRate(empty)); time += 1) {
      empty = Math.max(empty, await emptyRate(browser));
      rate = Math.max(rate, await scrollingRate(page, "Records"));
    }
    const bytes = await peakMemory(page);
    console.log(`scrolling: ${rate.toFixed(1)} frames a second, an empty page ${empty.toFixed(1)}; memory: ${(bytes / 1e6).toFixed(0)} MB`);
    assert.ok(rate >= minRate(empty), `${rate} frames a second, ${empty} of an empty page`);
    assert.ok(bytes < 500_000_000, `${bytes} bytes`);
    await assertAccessible(page);
    await assertFits(page);
    // Filters by model, by severity, and by words.
    await page.getByRole("combobox", { name: "Model" }).click();
    await page.getByTitle("middle-8b").click();
    await page.getByText("33,333 of 100,000 records").waitFor();
    await page.getByRole("searchbox", { name: "Find by id or beginning" }).fill("record-4210");
    await page.getByText("5 of 100,000 records").waitFor();
    await page.getByRole("button", { name: "Check the 5 shown" }).click();
    await page.getByText(/^Fails \d/).first().waitFor();
    await page.getByRole("option").first().click();
    await page.getByRole("region", { name: /^Record / }).getByText("serp_block_missing").first().waitFor();
    const rows = (await exportText(page, NAMES.en, "CSV")).trim().split("\r\n");
    assert.ok(rows.length >= 6 && rows.slice(1).every((row) => row.startsWith("records.jsonl,")), rows.join("\n"));
  });
});

test("reading a large file is stopped, and what was read stays", async () => {
  const path = join(folder, "records.jsonl");
  await withPage(browser, studio, { language: "zh" }, async (page) => {
    page.setDefaultTimeout(60_000);
    await page.goto("/inspect");
    await page.locator("input[type=file]").setInputFiles(path);
    await page.getByRole("option").first().waitFor();
    await page.getByRole("button", { name: "取消", exact: true }).click();
    await page.getByText("文件没有读完，仅显示已读取的记录。").waitFor();
    await page.getByRole("option").first().click();
    await page.getByRole("region", { name: /条记录/ }).getByText(/个错误/).waitFor();
  });
});

test("records that the server refuses are told, with its reason", async () => {
  const path = join(folder, "refused.jsonl");
  const lines = ["no_such_dialect", "thinkingml", "neither"].map((protocol, at) => JSON.stringify({ id: `r${at}`, protocol, reply: "<final>\na\n</final>\n" }));
  writeFileSync(path, `${lines.join("\n")}\n`);
  for (const language of ["en", "zh"] as const) {
    await withPage(browser, studio, { language, allow: [/status of 4/] }, async (page) => {
      await page.goto("/inspect");
      await page.locator("input[type=file]").setInputFiles(path);
      await page.getByRole("button", { name: language === "en" ? "Check the 3 shown" : "检查显示的 3 条" }).click();
      const alert = page.getByRole("alert");
      await alert.getByText(language === "en" ? "The server refused to check 2 records, which stay unchecked." : "服务器拒绝检查 2 条记录，它们仍为未检查。").waitFor();
      await alert.getByText(language === "en" ? /^Record [13]: .*(?:no_such_dialect|neither)/ : /^第 [13] 条记录：/).waitFor();
    });
  }
});

test("rules are found by their words", async () => {
  await withPage(browser, studio, { language: "en", width: 390 }, async (page) => {
    await page.goto("/inspect/rules");
    await page.getByRole("searchbox", { name: /Find by code/ }).fill("T-032");
    await page.getByRole("link", { name: "phase_id_not_increasing" }).click();
    await page.getByRole("heading", { level: 1, name: "phase_id_not_increasing" }).waitFor();
    await assertFits(page);
  });
});

test("a text that is looked into is there again after a rule was read", async () => {
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/inspect");
    await check(page, NAMES.en, BROKEN);
    await page.getByRole("link", { name: /T-032/ }).first().click();
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.getByRole("link", { name: "All rules" }).click();
    await page.getByRole("link", { name: "Inspect" }).click();
    assert.equal(await page.getByRole("textbox", { name: NAMES.en.text }).inputValue(), BROKEN);
    await page.getByText(NAMES.en.fails, { exact: true }).first().waitFor();
  });
});
