import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { type Browser, type Page } from "playwright-core";
import { parse } from "yaml";
import { startCuttingProxy } from "./run/cutting.ts";
import { beginDialogue, say, SCRIPT, storeScript } from "./run/kit.ts";
import { assertAccessible, assertFits, openBrowser, waitForPage, withPage } from "./support/browser.ts";
import { BINARY, Studio } from "./support/server.ts";

const REPLIES = "studio/tests/run/replies.jsonl";
const command = promisify(execFile);
let browser: Browser;

before(async () => {
  browser = await openBrowser();
});

after(() => browser.close());

async function withStudio(act: (studio: Studio) => Promise<void>, replay = REPLIES): Promise<void> {
  const studio = await Studio.start({ replay });
  try {
    await act(studio);
  } finally {
    await studio.stop();
  }
}

const chat = (page: Page) => page.getByRole("list", { name: /^(Dialogue|对话)$/ });

/** Names of the page, by language; the second one is narrow. */
const NAMES = {
  en: {
    width: 1280, noRuns: "No runs yet", newRun: "New run", begin: "Begin", proceed: "Let the model begin", say: "What the user says…",
    over: "The dialogue is over.", threshold: "Threshold 80", rounds: "2 of 5 rounds", asTable: "Show as table", asPlot: "Show as plot",
    understanding: "Understanding", look: "Look into round 2", met: "criteria met", raw: "Raw reply", detail: "Round 2 in detail",
    fork: "Answer differently", forked: "Forked from another run", send: "Send", original: "Open the original run", all: "All runs",
    isFork: "Fork", saveTest: "Save as test", replay: "Replay a test", replayThis: "Replay this run",
    passed: "2 turns as expected (version 1)", differs: /\d differences? \(version 2\)/, goesOn: "Goes on", exits: "Exits",
  },
  zh: {
    width: 390, noRuns: "还没有运行", newRun: "新建运行", begin: "开始", proceed: "让模型开始", say: "输入回复…",
    over: "对话已结束。", threshold: "阈值 80", rounds: "2/5 轮", asTable: "显示为表格", asPlot: "显示为图表",
    understanding: "理解度", look: "查看第 2 轮", met: "达到条件", raw: "原始回复", detail: "第 2 轮的调试信息",
    fork: "换一种回答", forked: "从另一个运行分出", send: "发送", original: "打开原来的运行", all: "所有运行",
    isFork: "分支", saveTest: "保存为测试", replay: "重放测试", replayThis: "重放本次运行",
    passed: "2 轮均符合预期（版本 1）", differs: /处不同（版本 2）/, goesOn: "继续", exits: "退出",
  },
} as const;

for (const language of ["en", "zh"] as const) {
  const names = NAMES[language];
  const look = { language, width: names.width };

  test(`S-096: a script is run to its exit, and each round can be looked into (${language})`, async () => {
    await withStudio(async (studio) => {
      await storeScript(studio, SCRIPT.slice(0, SCRIPT.indexOf("          - topic: 练习")));
      await withPage(browser, studio, look, async (page) => {
        await page.goto("/run");
        await page.getByText(names.noRuns).waitFor();
        await page.getByRole("button", { name: names.newRun }).click();
        await page.getByRole("textbox", { name: "用户名" }).fill("小红");
        await assertAccessible(page);
        await page.getByRole("button", { name: names.begin, exact: true }).click();
        await page.getByRole("heading", { level: 1, name: "ABC 模型 · ABC" }).waitFor();
        await page.getByRole("button", { name: names.proceed }).click();
        await chat(page).getByText("有三个部分").waitFor();
        await page.getByRole("textbox", { name: names.say }).fill("比如朋友没回消息");
        await page.keyboard.press("Enter");
        await page.getByText(names.over).waitFor();
        await chat(page).getByText("很好，你已经理解了。").waitFor();
        await page.getByText(names.threshold).waitFor();
        await page.getByText(names.rounds).waitFor();
        assert.equal(await page.locator("figure svg circle").count(), 2);
        await page.getByRole("button", { name: names.asTable }).click();
        const table = page.locator("figure").getByRole("region", { name: names.understanding });
        assert.deepEqual(await table.getByRole("cell").allInnerTexts(), ["30", "92"]);
        await assertAccessible(page);
        await page.getByRole("button", { name: names.asPlot }).click();
        await page.locator("figure svg").waitFor();
        await assertFits(page);
        await page.getByRole("button", { name: names.look }).click();
        const drawer = page.getByRole("dialog");
        await drawer.getByText(names.met).waitFor();
        await drawer.locator("mark").filter({ hasText: "小红" }).first().waitFor();
        await drawer.getByRole("region", { name: names.raw }).getByText("understanding_level").waitFor();
        await assertAccessible(page);
        // The address names the round.
        await page.reload();
        await page.getByText(names.detail).waitFor();
      });
    });
  });

  test(`an earlier round is answered differently, and the old branch stays (${language})`, async () => {
    await withStudio(async (studio) => {
      const script = await storeScript(studio);
      const id = await beginDialogue(studio, script);
      await say(studio, id);
      await say(studio, id, "听懂了");
      await withPage(browser, studio, look, async (page) => {
        await page.goto(`/run/${id}`);
        await chat(page).getByText("听懂了").waitFor();
        await page.getByRole("button", { name: names.fork }).last().click();
        await page.getByText(names.forked).waitFor();
        await page.getByRole("textbox", { name: names.say }).fill("不太懂");
        await page.getByRole("button", { name: names.send }).click();
        await chat(page).getByText("不太懂").waitFor();
        await page.getByRole("textbox", { name: names.say }).waitFor();
        assert.equal(await chat(page).getByText("听懂了").count(), 0);
        await assertAccessible(page);
        await page.getByRole("link", { name: names.original }).click();
        await chat(page).getByText("听懂了").waitFor();
        assert.equal(await chat(page).getByText("不太懂").count(), 0);
        await page.getByRole("link", { name: names.all }).click();
        await page.getByText(names.isFork, { exact: true }).waitFor();
        await assertFits(page);
      });
    });
  });
}

test("S-096: a round tells what it sets and what keeps it from its exit; requests to the client are answered", async () => {
  const actions = `
              - {type: ai_think, prompt: "{用户名}的心情如何？", output: {心情: 一个词}}
              - {type: use_skill, skill: breathing, minutes: 5, variable: 呼吸}
              - {type: show_form, form: {title: "{用户名}的一周", fields: [睡眠, 心情]}, variable: 一周}
              - {type: show_pic, src: assets/abc.png, variable: 图片}
              - {type: ai_say, content: "讲解{一周}", max_rounds: 3}
`;
  const yaml = SCRIPT.replace(/actions:\n[^]*/, `actions:${actions}`);
  await withStudio(async (studio) => {
    const id = await beginDialogue(studio, await storeScript(studio, yaml));
    await withPage(browser, studio, { language: "en" }, async (page) => {
      await page.goto(`/run/${id}`);
      await page.getByRole("button", { name: "Let the model begin" }).click();
      const answer = page.getByRole("textbox", { name: "Answer", exact: true });
      for (const [kind, field, value] of [
        ["Skill", "breathing", "done"],
        ["Form", "小明的一周", '{"睡眠": "六小时", "心情": "好"}'],
        ["Picture", "assets/abc.png", "seen"],
      ] as const) {
        await page.getByText(`The client must answer: ${kind}`).waitFor();
        await page.getByText(field).first().waitFor();
        await answer.fill(value);
        await page.keyboard.press("Enter");
      }
      await chat(page).getByText("有三个部分").waitFor();
      const { variables } = (await studio.request("GET", `/api/v1/dialogues/${id}`)) as { variables: Record<string, unknown> };
      assert.deepEqual([variables["呼吸"], variables["一周"], variables["图片"]], ["done", { 睡眠: "六小时", 心情: "好" }, "seen"]);
      const drawer = page.getByRole("dialog");
      await page.getByRole("button", { name: "Thought" }).click();
      await drawer.getByRole("heading", { name: "Variables set" }).waitFor();
      await drawer.getByText("平静", { exact: true }).waitFor();
      await drawer.getByRole("button", { name: "Close" }).click();
      await page.getByRole("button", { name: "Look into round 1" }).click();
      await drawer.getByText("understanding is below the threshold").waitFor();
      await drawer.getByText("the model does not suggest ending the action").waitFor();
      await drawer.getByText("the user still has questions").waitFor();
      await assertAccessible(page);
    });
  });
});

test("a template that is gone is not said to have changed", async () => {
  await withStudio(async (studio) => {
    const id = await beginDialogue(studio, await storeScript(studio));
    await say(studio, id);
    await withPage(browser, studio, { language: "en", allow: [/status of 404/] }, async (page) => {
      await page.route("**/api/v1/templates/**", (route) =>
        route.fulfill({ status: 404, json: { code: "template_not_found", detail: "there is no such template" } }),
      );
      await page.goto(`/run/${id}?round=1`);
      await page.getByText("The template could not be loaded; what was put in cannot be marked.").waitFor();
    });
  });
});

test("runs are looked for beyond the first page, and every script can be chosen", async () => {
  await withStudio(async (studio) => {
    const named = await storeScript(studio, SCRIPT, "The needle");
    const needle = await beginDialogue(studio, named);
    const script = await storeScript(studio);
    for (let made = 0; made < 205; made += 5) {
      await Promise.all(Array.from({ length: 5 }, () => beginDialogue(studio, script)));
      await Promise.all(Array.from({ length: 5 }, (_, index) => storeScript(studio, SCRIPT, `Script ${made + index}`)));
    }
    await withPage(browser, studio, { language: "en" }, async (page) => {
      await page.goto("/run");
      await page.getByRole("list", { name: "Runs" }).getByRole("link").first().waitFor();
      await page.getByRole("searchbox", { name: "Search runs" }).fill("needle");
      await page.getByRole("link", { name: /^The needle/ }).click();
      await page.waitForURL(`**/run/${needle}`);
      await page.getByRole("link", { name: "All runs" }).click();
      await page.getByRole("searchbox", { name: "Search runs" }).fill("haystack");
      await page.getByText("No run matches").waitFor();
    });
  });
});

test("a dry run shows the branch that is never reached", async () => {
  await withStudio(async (studio) => {
    await storeScript(studio);
    await withPage(browser, studio, { language: "en" }, async (page) => {
      await page.goto("/run?new");
      await page.getByRole("radio", { name: "Answers written now" }).check();
      await page.getByRole("textbox", { name: "Answers, one a line" }).fill("比如朋友没回消息\n我再想想");
      await page.getByRole("button", { name: "Begin", exact: true }).click();
      await page.getByText("The dialogue reached its end.").waitFor();
      await page.getByText("2 of 3 actions, 2 of 9 exits reached").waitFor();
      const place = page.getByRole("list", { name: "Place in the script" });
      const branch = place.getByRole("listitem").filter({ hasText: "comfort" }).last();
      await branch.getByRole("img", { name: "Left out, its condition did not hold" }).waitFor();
      await branch.getByText("last round: never taken").waitFor();
      await place.getByText("criteria met: taken").first().waitFor();
      await assertAccessible(page);
    });
  });
});

test("a model plays the user in a role", async () => {
  await withStudio(async (studio) => {
    await storeScript(studio);
    await withPage(browser, studio, { language: "zh", width: 390 }, async (page) => {
      await page.goto("/run?new");
      await page.getByRole("radio", { name: "模型扮演角色" }).check();
      await page.getByRole("textbox", { name: "角色描述" }).fill("一位大学生");
      await page.getByRole("button", { name: "开始", exact: true }).click();
      await page.getByText("对话走到了结尾。").waitFor();
      const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
      const { data } = (await studio.request("GET", `/api/v1/dialogues/${id}/turns`)) as { data: { text: string | null }[] };
      // The request holds the user's words, and any recording may answer it.
      assert.ok((data[1]?.text ?? "") !== "");
      await assertFits(page);
      await assertAccessible(page);
    });
  });
});

test("a run begins at a step, with a variable by hand", async () => {
  await withStudio(async (studio) => {
    await storeScript(studio);
    await withPage(browser, studio, { language: "en" }, async (page) => {
      await page.goto("/run?new");
      await page.getByRole("combobox", { name: "Begin at" }).click();
      await page.getByTitle("介绍 / 练习").click();
      await page.getByRole("button", { name: "Begin", exact: true }).click();
      const here = page.locator("[aria-current=step]");
      await here.getByText("practice").waitFor();
      await page.getByRole("button", { name: "Let the model begin" }).click();
      await chat(page).getByText("有三个部分").waitFor();
      await page.getByRole("button", { name: "Look into round 1" }).click();
      await page.getByRole("dialog").locator("mark").filter({ hasText: "练习：小明" }).waitFor();
    });
  });
});

for (const language of ["en", "zh"] as const) {
  const names = NAMES[language];

  test(`a run is saved as a test, and replayed by the studio and by the program (${language})`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "tambour-run-"));
    try {
      await withStudio(async (studio) => {
        const script = await storeScript(studio);
        const id = await beginDialogue(studio, script);
        await say(studio, id);
        await say(studio, id, "比如朋友没回消息");
        await withPage(browser, studio, { language, width: names.width }, async (page) => {
          await page.goto(`/run/${id}`);
          const [file] = await Promise.all([
            page.waitForEvent("download"),
            page.getByRole("button", { name: names.saveTest }).click(),
          ]);
          const saved = join(folder, "abc.test.yaml");
          await file.saveAs(saved);
          // The test names the script as it is stored.
          const { script: named } = parse(readFileSync(saved, "utf8")) as { script: string };
          assert.match(named, /\.yaml$/);
          writeFileSync(join(folder, named), SCRIPT);
          const { stdout } = await command(BINARY, ["run", "--test", saved]);
          assert.match(stdout, /: 2 turns as expected\n$/);
          // The same script with another threshold ends differently.
          const harder = SCRIPT.replace("max_rounds: 5", "max_rounds: 5, exit_criteria: {understanding_threshold: 99, expressed_threshold: null}");
          writeFileSync(join(folder, named), harder);
          const report = join(folder, "report.xml");
          await assert.rejects(command(BINARY, ["run", "--test", saved, "--junit", report]), { code: 1 });
          assert.match(readFileSync(report, "utf8"), /<failure type="difference"/);

          await page.getByRole("button", { name: names.replay }).click();
          await page.getByRole("button", { name: names.replayThis }).click();
          await page.getByText(names.passed).waitFor();
          await assertAccessible(page);
          await studio.request("PUT", `/api/v1/scripts/${script}`, { yaml: harder });
          await page.locator("input[type=file]").setInputFiles(saved);
          await page.getByText(names.differs).waitFor();
          await page.getByRole("row").filter({ hasText: names.goesOn }).filter({ hasText: names.exits }).waitFor();
          await assertAccessible(page);
        });
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

test("a dropped connection loses nothing", async () => {
  await withStudio(async (studio) => {
    const id = await beginDialogue(studio, await storeScript(studio));
    const way = await startCuttingProxy(studio, 1500);
    try {
      // The page needs no more than the address of a studio.
      const through: Pick<Studio, "url"> = { url: way.url };
      await withPage(browser, through, { language: "en", allow: [/Failed to load resource|ERR_/] }, async (page) => {
        await page.goto(`/run/${id}`);
        await page.getByRole("button", { name: "Let the model begin" }).click();
        await chat(page).getByText("一二三").waitFor();
        await page.getByRole("button", { name: "Look into round 1" }).waitFor();
        const chatText = await chat(page).innerText();
        assert.equal(chatText.split("直到最后一个字。").length, 2);
        assert.deepEqual([way.cuts(), way.follows()], [1, 1]);
      });
    } finally {
      way.close();
    }
  }, "studio/tests/run/slow.jsonl");
});

test("a turn is cancelled, and asked again", async () => {
  await withStudio(async (studio) => {
    const id = await beginDialogue(studio, await storeScript(studio));
    await withPage(browser, studio, { language: "en" }, async (page) => {
      await page.goto(`/run/${id}`);
      await page.getByRole("button", { name: "Let the model begin" }).click();
      await chat(page).getByText("一二三").waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await page.getByRole("button", { name: "Ask again" }).click();
      await page.getByRole("button", { name: "Look into round 1" }).last().waitFor();
      await chat(page).getByText("直到最后一个字。").waitFor();
    });
  }, "studio/tests/run/slow.jsonl");
});

test("a payload in a reply, a script or its names does not run", async () => {
  await withStudio(async (studio) => {
    const attack = "<img src=x onerror='window.hacked=1'>";
    const yaml = SCRIPT.replaceAll("三个部分", attack).replace("session: ABC", `session: "${attack}"`);
    const id = await beginDialogue(studio, await storeScript(studio, yaml, attack), { variables: { 用户名: attack } });
    await say(studio, id);
    await say(studio, id, attack);
    for (const language of ["zh", "en"] as const) {
      await withPage(browser, studio, { language }, async (page) => {
        for (const path of ["/run", `/run/${id}`, `/run/${id}?round=1`]) {
          await page.goto(path);
          await waitForPage(page);
        }
        await page.getByRole("dialog").locator("mark").first().waitFor();
        await chat(page).getByText(attack).first().waitFor();
        assert.equal(await page.evaluate(() => (window as { hacked?: number }).hacked), undefined);
        assert.equal(await page.locator("img[src=x], a[href^=javascript]").count(), 0);
      });
    }
  });
});
