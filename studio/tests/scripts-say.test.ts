import assert from "node:assert/strict";
import { test } from "node:test";
import { type Page } from "playwright-core";
import { assertAccessible, withPage } from "./support/browser.ts";
import { makeScript, openScript, SAY, scriptOf, storedScript, waitForVersion } from "./support/scripts.ts";
import { openStage } from "./support/stage.ts";

const { browser, studio } = await openStage();

/** Types at the end of a line of the script's text. */
async function typeAtLineEnd(page: Page, line: string, typed: string): Promise<void> {
  await page.getByRole("textbox", { name: "Text" }).getByText(line).click();
  // In a wrapped line, the first press goes only to the wrap.
  await page.keyboard.press("End");
  await page.keyboard.press("End");
  await page.keyboard.type(typed);
}

for (const language of ["zh", "en"] as const) {
  const words =
    language === "zh"
      ? { content: "讲解内容", acknowledge: "需要用户确认", rounds: "最大交互轮数", folded: "高级退出条件配置（可选）", threshold: "理解度阈值", questions: "允许有疑问退出", interaction: "交互设置", exit: "退出条件", needed: "请输入讲解内容", draft: "草稿", place: "输入讲解内容，可使用变量 {变量名}...", hints: ["讲解/说服的核心内容，支持多行文本和脚本变量", "是否需要用户回复后才继续执行", "防止无限循环的保护机制", "用户理解度达到此阈值时允许退出（0-100）", "是否允许用户仍有疑问时退出话题"] }
      : { content: "Content", acknowledge: "Require acknowledgement", rounds: "Maximum rounds", folded: "Advanced exit conditions (optional)", threshold: "Understanding threshold", questions: "Allow leaving with open questions", interaction: "Interaction", exit: "Exit conditions", needed: "Please enter the content", draft: "Draft", place: "What to explain; variables such as {name} can be used...", hints: ["What is explained or argued; several lines, and variables of the script", "Whether the user must reply before the dialogue continues", "Keeps the action from going on forever", "The action may end once understanding reaches this (0-100)", "Whether the action may end while the user has questions"] };

  test(`ai_say is edited by its labels, ${language} (S-090, S-092, S-093, S-097)`, async () => {
    const id = await makeScript(studio, scriptOf(SAY));
    await withPage(browser, studio, { language }, async (page) => {
      await openScript(page, id);
      const content = page.getByLabel(words.content, { exact: true });
      await content.waitFor();
      assert.equal(await content.inputValue(), "Hello");
      assert.equal(await content.getAttribute("rows"), "10");
      assert.equal(await content.getAttribute("placeholder"), words.place);
      const count = page.locator(".ant-form-item").filter({ has: content }).locator(".ant-input-data-count");
      assert.equal(await count.textContent(), "5");
      await page.getByText(words.interaction, { exact: true }).waitFor();
      await page.getByText(words.exit, { exact: true }).waitFor();
      const acknowledge = page.getByRole("switch", { name: words.acknowledge });
      assert.equal(await acknowledge.getAttribute("aria-checked"), "true");
      assert.equal(await page.getByLabel(words.rounds, { exact: true }).inputValue(), "5");
      const threshold = page.getByLabel(words.threshold, { exact: true });
      assert.equal(await threshold.isVisible(), false);
      await page.getByRole("button", { name: words.folded }).click();
      await threshold.waitFor();
      assert.equal(await threshold.inputValue(), "80%");
      assert.equal(await page.getByRole("switch", { name: words.questions }).getAttribute("aria-checked"), "false");
      const labels = [words.content, words.acknowledge, words.rounds, words.threshold, words.questions];
      for (const [at, label] of labels.entries()) {
        await page.locator(".ant-form-item-label").filter({ hasText: label }).locator(".ant-form-item-tooltip").hover();
        await page.getByRole("tooltip", { name: words.hints[at] ?? "", exact: true }).waitFor();
      }
      await assertAccessible(page);

      await content.fill("");
      await page.getByText(words.needed).first().waitFor();
      assert.equal((await storedScript(studio, id)).latest, 1);
      assert.equal(await count.textContent(), "0");
      await content.fill("你好，{name}");
      assert.equal(await count.textContent(), "9");
      await threshold.fill("90");
      await threshold.press("Tab");
      await acknowledge.click();
      await waitForVersion(page, 2, words.draft).catch(() => waitForVersion(page, 3, words.draft));
      await page.waitForFunction(async ([address]) => {
        const overview = (await (await fetch(address ?? "")).json()) as { latest: number };
        const last = (await (await fetch(`${address ?? ""}?version=${overview.latest}`)).json()) as { yaml: string };
        return last.yaml.includes("require_acknowledgment: false") && last.yaml.includes("understanding_threshold: 90");
      }, [`/api/v1/scripts/${id}`]);
      const written =
        "                content: \"你好，{name}\"\n                require_acknowledgment: false\n                exit_criteria:\n                  understanding_threshold: 90\n";
      assert.equal((await storedScript(studio, id)).yaml, scriptOf(`              - type: ai_say # explains\n${written}`));
    });
  });
}

test("rounds and threshold beyond their bounds are not saved, and those at them are (S-091)", async () => {
  const id = await makeScript(studio, scriptOf(SAY));
  await withPage(browser, studio, {}, async (page) => {
    await openScript(page, id);
    await page.getByRole("button", { name: "Advanced exit conditions (optional)" }).click();
    const fields = [
      { label: "Maximum rounds", wrong: ["0", "21", "-1", "1.5", ""], right: "20", reason: "Please enter a whole number from 1 to 20", key: "max_rounds" },
      { label: "Understanding threshold", wrong: ["-1", "101", "100.5", ""], right: "100", reason: "Please enter a number from 0 to 100", key: "understanding_threshold" },
    ];
    for (const [at, { label, wrong, right, reason, key }] of fields.entries()) {
      const field = page.getByLabel(label, { exact: true });
      for (const value of wrong) {
        await field.fill(value);
        await field.press("Tab");
        await page.getByText(`The form is not valid and was not saved: ${reason}`).waitFor();
        await page.getByRole("status").filter({ hasText: "Unsaved changes" }).waitFor();
        assert.equal((await storedScript(studio, id)).latest, at + 1, `${label} ${value}`);
      }
      await field.fill(right);
      await field.press("Tab");
      await waitForVersion(page, at + 2);
      assert.match((await storedScript(studio, id)).yaml, new RegExp(`${key}: ${right}\\n`));
    }
  });
});

test("a form that is not valid says why, and keeps what was typed through navigation, reload and edits (S-095)", async () => {
  const id = await makeScript(studio, scriptOf(`${SAY}              - {type: ai_say, content: second}\n`));
  await withPage(browser, studio, {}, async (page) => {
    await openScript(page, id);
    const [content, rounds] = [page.getByLabel("Content", { exact: true }), page.getByLabel("Maximum rounds", { exact: true })];
    const expectTyped = async () => {
      await page.getByText("The form is not valid and was not saved: Please enter a whole number from 1 to 20").waitFor();
      assert.deepEqual([await content.inputValue(), await rounds.inputValue()], ["Half an hour of typing", "21"]);
    };
    await rounds.fill("21");
    await rounds.press("Tab");
    await content.fill("Half an hour of typing");
    await expectTyped();
    assert.equal(await page.getByRole("status").filter({ hasText: /^\s*Saved/ }).count(), 0);

    await page.getByRole("treeitem", { name: /Step\s*two/ }).click();
    await page.getByLabel("Name", { exact: true }).waitFor();
    await page.getByText("Forms are not valid, and what was typed in them is not saved:").waitFor();
    await page.getByRole("button", { name: "ai_say Hello" }).click();
    await expectTyped();

    await page.reload();
    await page.getByText(/Unsaved changes of .* were put back/).waitFor();
    await expectTyped();

    await page.getByRole("link", { name: "All scripts" }).click();
    await page.getByRole("link", { name: "ABC" }).first().waitFor();
    await page.goBack();
    await page.getByText(/Unsaved changes of .* were put back/).waitFor();
    await page.getByRole("button", { name: "Keep them" }).click();
    await expectTyped();

    // The part moves below the other one, with its typed values.
    await page.getByRole("button", { name: "Move down" }).click();
    await expectTyped();
    await page.getByRole("treeitem", { name: /second/ }).click();
    assert.equal(await content.inputValue(), "second");
    await page.keyboard.press("Control+d");
    await page.getByRole("button", { name: "ai_say Hello" }).click();
    await expectTyped();
    await page.waitForURL(/actions%5B2%5D/);
    await rounds.fill("20");
    await rounds.press("Tab");
    await page.getByRole("status").filter({ hasText: /^\s*Saved/ }).waitFor();
    const second = "              - {type: ai_say, content: second}\n";
    const typed = SAY.replace("Hello", "Half an hour of typing") + "                max_rounds: 20\n";
    assert.equal((await storedScript(studio, id)).yaml, scriptOf(second + second + typed));
  });
});

test("what was typed in a part that is deleted is told, and comes back with it (S-095)", async () => {
  const id = await makeScript(studio, scriptOf(`${SAY}              - {type: ai_say, content: second}\n`));
  await withPage(browser, studio, { language: "zh" }, async (page) => {
    await openScript(page, id);
    const rounds = page.getByLabel("最大交互轮数", { exact: true });
    await rounds.fill("21");
    await rounds.press("Tab");
    await page.getByLabel("讲解内容", { exact: true }).fill("半小时的输入");
    await page.getByText("表单无效，未保存").waitFor();
    await page.getByRole("treeitem", { name: /Hello/ }).click();
    await page.keyboard.press("Delete");
    const notice = page.getByRole("alert").filter({ hasText: "“ai_say Hello”已不在脚本中" });
    await notice.getByText("content: 半小时的输入").waitFor();
    await page.getByRole("treeitem", { name: /second/ }).click();
    await page.getByLabel("讲解内容", { exact: true }).waitFor();
    assert.equal(await page.getByLabel("讲解内容", { exact: true }).inputValue(), "second");
    await assertAccessible(page);
    // The form comes back with its part.
    await page.getByRole("button", { name: "撤销" }).click();
    await notice.waitFor({ state: "detached" });
    await page.getByRole("treeitem", { name: /Hello/ }).click();
    await page.getByText("表单无效，未保存").waitFor();
    assert.deepEqual([await page.getByLabel("讲解内容", { exact: true }).inputValue(), await rounds.inputValue()], ["半小时的输入", "21"]);
    await page.getByRole("button", { name: "重做" }).click();
    await notice.getByRole("button", { name: "放弃" }).click();
    await page.getByRole("status").filter({ hasText: /^\s*已保存/ }).waitFor();
    assert.equal((await storedScript(studio, id)).yaml, scriptOf("              - {type: ai_say, content: second}\n"));
  });
});

test("findings stand at their field, and are read with it; the tree says which part has errors", async () => {
  const id = await makeScript(studio, scriptOf(SAY));
  await withPage(browser, studio, { allow: [/status of 422/] }, async (page) => {
    await openScript(page, id);
    const content = page.getByLabel("Content", { exact: true });
    await content.fill("Hello {nobody}");
    const field = page.locator(".ant-form-item").filter({ has: content });
    await field.locator(".ant-form-item-extra").getByRole("listitem").filter({ hasText: "nobody" }).waitFor();
    const described = (await content.getAttribute("aria-describedby"))?.split(" ") ?? [];
    const texts = await page.evaluate((ids) => ids.map((one) => document.getElementById(one)?.textContent ?? ""), described);
    assert.ok(texts.some((text) => text.includes("nobody")), texts.join(" | "));
    await typeAtLineEnd(page, "Hello {nobody}", "\nmax_rounds: 30");
    await page.locator(".ant-form-item").filter({ hasText: "Maximum rounds" }).locator(".ant-form-item-extra").getByText("max_rounds").waitFor();
    await page.getByRole("treeitem", { name: /Step\s*one/ }).click();
    await page.getByRole("button", { name: "Add action" }).click();
    await page.getByRole("region", { name: "Findings" }).getByText("content_required").waitFor();
    await page.getByRole("treeitem", { name: /no name.*has errors/ }).waitFor();
  });
});

test("what is wrong with a script is told in the language of the page, whatever the setting is", async () => {
  const id = await makeScript(studio, scriptOf(SAY.replace("Hello", '"Hello {nobody}"')));
  for (const [language, findings, message] of [["en", "Findings", /content uses \{nobody\}, which has no value/], ["zh", "检查结果", /content\s?用到了\s?\{nobody\}，它没有值/]] as const) {
    await withPage(browser, studio, { language, allow: [/status of 422/] }, async (page) => {
      await openScript(page, id);
      await page.getByRole("region", { name: findings }).getByText(message).waitFor();
      if (language === "zh") return;
      // The reason why nothing is saved is shown, too.
      await typeAtLineEnd(page, "Hello {nobody}", "\nmax_rounds: 99");
      await page.getByRole("status").filter({ hasText: /Draft kept in this browser: .*max_rounds/ }).waitFor();
    });
  }
});

test("a variable is inserted where the cursor stands: declared ones and those of the system are offered", async () => {
  const declared = scriptOf(SAY).replace("    phases:", "    declare:\n      - {var: 用户名, value: 小明}\n    phases:");
  const id = await makeScript(studio, declared);
  await withPage(browser, studio, {}, async (page) => {
    await openScript(page, id);
    const content = page.getByLabel("Content", { exact: true });
    await content.fill("Hello !");
    await content.press("ArrowLeft");
    await page.getByRole("button", { name: "Insert variable" }).click();
    const system = ["time", "who", "user", "chat_history", "understanding_threshold", "current_round", "round", "max_rounds"];
    for (const name of system) await page.getByRole("menuitem", { name: `{%${name}%}`, exact: true }).waitFor();
    await page.getByRole("menuitem", { name: "{用户名}", exact: true }).click();
    assert.equal(await content.inputValue(), "Hello {用户名}!");
    await waitForVersion(page, 2).catch(() => waitForVersion(page, 3));
    assert.match((await storedScript(studio, id)).yaml, /content: "?Hello \{用户名\}!"?\n/);
  });
});
