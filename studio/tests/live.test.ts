import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Page } from "playwright-core";
import { assertAccessible, assertFits, withPage } from "./support/browser.ts";
import { Proxy } from "./support/proxy.ts";
import { Studio } from "./support/server.ts";
import { openStage } from "./support/stage.ts";

const REPLIES = "studio/tests/replies/live.jsonl";
/** Answer of the recording `long`. */
const WORDS = Array.from({ length: 160 }, (_, index) => `word${index + 1}`).join(" ");

const { browser, studio } = await openStage({ replay: REPLIES });

/** Names of the page, by language. */
const NAMES = {
  en: {
    message: "Message", model: "Model", send: "Send", answer: "Answer", completed: "Completed", cancel: "Cancel",
    cancelled: "Cancelled", running: "Running", findings: /^Findings \d/, events: /^Events \d/, lost: "The connection was lost",
    compare: "Two models side by side", secondModel: "Second model", calls: "Model calls",
    left: "Choose: To the left", thinking: "Thinking", hidden: "Thinking is hidden by the settings.",
    alone: /^The second model does not see this conversation/,
  },
  zh: {
    message: "消息", model: "模型", send: "发送", answer: "回答", completed: "已完成", cancel: "取消",
    cancelled: "已取消", running: "进行中", findings: /^检查结果 \d/, events: /^事件 \d/, lost: "连接已断开",
    compare: "并排比较两个模型", secondModel: "第二个模型", calls: "模型调用",
    left: "选择：To the left", thinking: "思考", hidden: "设置中选择了不显示思考过程。",
    alone: /^第二个模型看不到这个聊天/,
  },
} as const;

type Names = (typeof NAMES)["en" | "zh"];

async function ask(page: Page, names: Names, model: string): Promise<void> {
  await page.getByRole("textbox", { name: names.message, exact: true }).fill("Say it.");
  await page.getByRole("textbox", { name: names.model, exact: true }).fill(model);
  await page.getByRole("button", { name: names.send }).click();
}

const words = async (page: Page, names: Names): Promise<string> =>
  (await page.getByRole("region", { name: names.answer }).innerText()).replace(/\s+/g, " ").trim();

/** Log of thinking. */
const thinkingLog = (page: Page, names: Names) =>
  page.locator("details").filter({ has: page.locator("summary", { hasText: new RegExp(`^${names.thinking} `) }) }).first();

/** Waits until the last word of `long` is formatted. */
const waitForLastWord = (page: Page, names: Names) =>
  page.getByRole("region", { name: names.answer }).getByText(/word160\b/).waitFor({ timeout: 60_000 });

const waitForEnd = (page: Page, names: Names) => page.getByText(names.completed, { exact: true }).waitFor({ timeout: 60_000 });

for (const language of ["zh", "en"] as const) {
  const names = NAMES[language];

  test(`F-150: a stream is watched to its end with its thinking, which is folded then, and replayed by its address (${language})`, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/live");
      await ask(page, names, "long");
      // Phases open and fill before the answer arrives.
      await page.getByText("One word after the other.").first().waitFor();
      await page.getByText("In order.").first().waitFor();
      await page.getByText(names.running, { exact: true }).waitFor();
      await waitForEnd(page, names);
      await waitForLastWord(page, names);
      assert.equal(await words(page, names), WORDS);
      const log = thinkingLog(page, names);
      assert.equal(await log.getAttribute("open"), null);
      await log.locator("summary").first().click();
      await log.getByText("In order.").waitFor();
      await page.getByRole("img", { name: /16\d/ }).waitFor();
      await page.getByText(names.calls).click();
      await page.getByText(/"content": "Say it\."/).waitFor();
      await assertAccessible(page);
      await assertFits(page);
      // The address of the message replays it.
      await page.reload();
      await waitForEnd(page, names);
      await waitForLastWord(page, names);
      assert.equal(await words(page, names), WORDS);
    });
  });

  test(`a connection that is cut is told, and nothing is lost or told twice (${language})`, async () => {
    const proxy = await Proxy.to(studio.url);
    try {
      await withPage(browser, proxy, { language, allow: [/Failed to load resource/] }, async (page) => {
        await page.goto("/live");
        await ask(page, names, "long");
        await page.getByText(/word40\b/).first().waitFor();
        proxy.cut();
        await page.getByText(names.lost).first().waitFor();
        const before = await words(page, names);
        assert.ok(before.length < WORDS.length && WORDS.startsWith(before), before);
        // The page reconnects by itself.
        proxy.mend();
        await waitForEnd(page, names);
        await waitForLastWord(page, names);
        assert.equal(await words(page, names), WORDS);
        await page.getByRole("alert").filter({ hasText: names.lost }).waitFor({ state: "hidden" });
      });
    } finally {
      await proxy.stop();
    }
  });

  test(`a message is cancelled (${language})`, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/live");
      await ask(page, names, "endless");
      await page.getByText(/word5\b/).first().waitFor();
      await page.getByRole("button", { name: names.cancel }).click();
      await page.getByText(names.cancelled, { exact: true }).waitFor();
      assert.match(await words(page, names), /^word1 word2/);
      const id = page.url().split("/").at(-1) ?? "";
      const record = (await studio.request("GET", `/api/v1/messages/${id}`)) as { status: string };
      assert.equal(record.status, "cancelled");
    });
  });

  test(`two models answer beside each other (${language})`, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/live");
      await page.getByRole("checkbox", { name: names.compare }).check();
      await page.getByRole("textbox", { name: names.secondModel }).fill("two");
      await ask(page, names, "one");
      await page.getByText("The answer of one.").first().waitFor();
      await page.getByText("The answer of two.").first().waitFor();
      assert.equal(await page.getByRole("region", { name: names.answer }).count(), 2);
      await page.getByText(names.completed, { exact: true }).nth(1).waitFor();
      assert.match(page.url(), /\/live\/msg_\w+\?beside=msg_\w+$/);
      await assertAccessible(page);
      await assertFits(page);
    });
  });

  test(`F-150, F-212: blocks are widgets, a failed update is a short toast, and a choice fills the field (${language})`, async () => {
    await withPage(browser, studio, { language }, async (page) => {
      await page.goto("/live");
      await ask(page, names, "widgets");
      // The toast on the state blocks nothing, and disappears by itself.
      await page.getByText("部分状态更新失败").first().waitFor();
      await waitForEnd(page, names);
      const answer = page.getByRole("region", { name: names.answer });
      await answer.locator("strong", { hasText: "fork" }).waitFor();
      await answer.locator("dt", { hasText: "SFW" }).waitFor();
      await answer.getByText("The map").click();
      await answer.locator("em", { hasText: "river" }).waitFor();
      assert.equal(await answer.locator("img").count(), 0, "a picture of another site is not loaded");
      assert.equal(await answer.locator('a[href="https://example.com/fork.png"]').count(), 1);
      await answer.getByRole("table", { name: /game\.inventory/ }).getByText('["rope","lamp"]').waitFor();
      await answer.getByRole("button", { name: names.left }).click();
      assert.equal(await page.getByRole("textbox", { name: names.message, exact: true }).inputValue(), "To the left");
      await page.getByText(/conv_/).waitFor();
      // With two models, one of them would not know the earlier messages.
      await page.getByRole("checkbox", { name: names.compare }).check();
      await page.getByRole("note").filter({ hasText: names.alone }).waitFor();
      await page.getByText("部分状态更新失败", { exact: true }).waitFor({ state: "hidden" });
      await assertAccessible(page);
    });
  });
}

test("two models are asked before the list of models has arrived", async () => {
  await withPage(browser, studio, { language: "en" }, async (page) => {
    const names = NAMES.en;
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => { release = resolve; });
    await page.route("**/v1/models", async (route) => {
      await released;
      await route.continue();
    });
    await page.goto("/live");
    await page.getByRole("checkbox", { name: names.compare }).check();
    await page.getByRole("textbox", { name: names.secondModel }).fill("two");
    await ask(page, names, "one");
    await page.getByText("The answer of one.").first().waitFor();
    await page.getByText("The answer of two.").first().waitFor();
    release();
  });
});

test("F-150: the log of thinking is open, folded or not there, as the settings have it", async () => {
  const sent = { text: "Say it.", model: "one", dialect: "thinkingml", output_protocol: "jsonseq_v1", extensions: true, wait: true };
  const { message_id: id } = (await studio.request("POST", "/api/v1/messages", sent)) as { message_id: string };
  try {
    for (const [display, language] of [["shown", "en"], ["hidden", "zh"]] as const) {
      await studio.request("PUT", "/api/v1/settings", { thought_display: display });
      await withPage(browser, studio, { language }, async (page) => {
        await page.goto(`/live/${id}`);
        await waitForEnd(page, NAMES[language]);
        const log = thinkingLog(page, NAMES[language]);
        if (display === "shown") await log.getByText("2 + 2.").waitFor();
        else await page.getByText(NAMES[language].hidden).waitFor();
        assert.equal(await log.count(), display === "shown" ? 1 : 0);
        await assertAccessible(page);
      });
    }
  } finally {
    await studio.request("PUT", "/api/v1/settings", { thought_display: "collapsed" });
  }
});

test("raw text, events and findings are in step", async () => {
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/live");
    await ask(page, NAMES.en, "gap");
    await waitForEnd(page, NAMES.en);
    // The pause before the third piece stands out.
    await page.locator("svg title", { hasText: /^A gap of/ }).first().waitFor({ state: "attached" });
    await page.getByText(/^Findings 1$/).click();
    await page.getByRole("list", { name: "Findings" }).getByRole("button", { name: "serp_block_missing" }).click();
    const raw = page.getByRole("list", { name: "Raw text" });
    await raw.getByRole("button", { name: /serp_block_missing/ }).waitFor();
    await page.getByText(/^Events \d+$/).click();
    await page.getByRole("listbox", { name: "Events" }).getByText('"Write"').click();
    await raw.locator("[class*=place]", { hasText: "Write" }).waitFor();
    await raw.getByText("Count").click();
    await page.getByRole("option", { selected: true }).getByText("Count").waitFor();
  });
});

test("F-106: what a reply says runs nothing and asks no other host for anything", async () => {
  await withPage(browser, studio, {}, async (page) => {
    await page.goto("/live");
    await ask(page, NAMES.en, "payloads");
    await waitForEnd(page, NAMES.en);
    for (const part of [/^Findings \d/, /^Model calls$/]) await page.getByText(part).click();
    await page.getByText("The map").or(page.locator("details summary").last()).first().click();
    for (const link of await page.locator("main a[href]").all()) {
      assert.doesNotMatch((await link.getAttribute("href")) ?? "", /^\s*javascript:/i);
    }
    assert.equal(await page.evaluate(() => (window as { __hacked?: number }).__hacked), undefined);
    assert.equal(await page.locator("main script, main iframe, main img[onerror]").count(), 0);
  });
});

test("an address without a message says so", async () => {
  await withPage(browser, studio, { allow: [/404/] }, async (page) => {
    await page.goto("/live/msg_00000000000000000000000000000000");
    await page.getByText("There is no such message").waitFor();
    await page.getByRole("link", { name: "New message" }).click();
    await page.getByText("No message yet").waitFor();
  });
});

test("a tool of the registry waits for leave and for its result, and both are given", async () => {
  const own = await Studio.start({ replay: "examples/srs-assistant/replies.jsonl" });
  try {
    const schema = { type: "object" };
    for (const [name, confirm] of [["classifyProjectComplexity", true], ["createComprehensiveSRS", false]] as const) {
      await own.request("PUT", `/api/v1/tools/${name}`, { description: name, schema, confirm, executor: { kind: "client" } });
    }
    await withPage(browser, own, {}, async (page) => {
      await page.goto("/live");
      await page.getByRole("button", { name: "More settings" }).click();
      await page.getByRole("combobox", { name: "Tools that may be called" }).click();
      for (const name of ["classifyProjectComplexity", "createComprehensiveSRS"]) await page.getByTitle(name).last().click();
      await page.keyboard.press("Escape");
      await ask(page, NAMES.en, "srs-1");
      await page.getByRole("button", { name: "Allow" }).click();
      const first = page.getByRole("region", { name: "Tool classifyProjectComplexity" });
      await first.getByRole("textbox").fill('{"level": "high"}');
      await first.getByRole("button", { name: "Send the result" }).click();
      await page.getByText('"level": "high"').first().waitFor();
      await assertAccessible(page);
    });
  } finally {
    await own.stop();
  }
});

test("a registered tool is called without a model, when somebody has agreed", async () => {
  const called: unknown[] = [];
  const hook = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => {
      called.push(JSON.parse(body));
      response.setHeader("content-type", "application/json").end('{"words": 2}');
    });
  });
  await new Promise<void>((resolve) => hook.listen(0, "127.0.0.1", resolve));
  const { port } = hook.address() as AddressInfo;
  const folder = mkdtempSync(join(tmpdir(), "tambour-config-"));
  const config = join(folder, "tambour.toml");
  writeFileSync(config, '[tools]\nallowed_hosts = ["127.0.0.1"]\nallow_private = true\n');
  const own = await Studio.start({ args: ["--config", config] });
  try {
    const schema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
    const executor = { kind: "http", url: `http://127.0.0.1:${port}/` };
    await own.request("PUT", "/api/v1/tools/count", { description: "Counts words", schema, confirm: true, executor });
    await withPage(browser, own, {}, async (page) => {
      await page.goto("/live");
      await page.getByRole("button", { name: "Call a tool" }).click();
      await page.getByRole("combobox", { name: "Tool", exact: true }).click();
      await page.getByTitle("count").last().click();
      const call = page.getByRole("button", { name: "Call", exact: true });
      await page.getByText('"text": ""').waitFor();
      assert.equal(await call.isDisabled(), true, "nobody has agreed yet");
      await page.getByRole("checkbox", { name: "I agree to this call" }).check();
      await call.click();
      await page.getByText(/^Done in \d+ ms$/).waitFor();
      await page.getByText('"words": 2').waitFor();
      await assertAccessible(page);
      await assertFits(page);
    });
    assert.deepEqual((called as { args: unknown }[]).map(({ args }) => args), [{ text: "" }]);
  } finally {
    await own.stop();
    hook.close();
  }
});

test("an alias is asked, and followed like every message", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tambour-config-"));
  const config = join(folder, "tambour.toml");
  writeFileSync(config, '[aliases.analyst]\nmodel = "one"\ndialect = "thinkingml"\n');
  const own = await Studio.start({ replay: REPLIES, args: ["--config", config] });
  try {
    await withPage(browser, own, {}, async (page) => {
      await page.goto("/live");
      await page.getByRole("combobox", { name: "Upstream or alias" }).click();
      await page.getByTitle("analyst").click();
      await page.getByRole("textbox", { name: "Message", exact: true }).fill("Say it.");
      await page.getByRole("button", { name: "Send" }).click();
      await waitForEnd(page, NAMES.en);
      await page.getByRole("region", { name: "Answer" }).getByText("The answer of one.").waitFor();
    });
  } finally {
    await own.stop();
    rmSync(folder, { recursive: true });
  }
});

test("a message that is opened again shows what was sent", async () => {
  const server = await Studio.start();
  try {
    const sent = (await server.request("POST", "/api/v1/messages", { text: "How deep is a squat?" })) as { message_id: string };
    await withPage(browser, server, { language: "en" }, async (page) => {
      await page.goto(`/live/${sent.message_id}`);
      await page.getByRole("group", { name: "Message that was sent" }).getByText("How deep is a squat?").waitFor();
      await assertAccessible(page);
    });
  } finally {
    await server.stop();
  }
});
