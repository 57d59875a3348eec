import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Browser } from "playwright-core";
import { assertAccessible, assertFits, openBrowser, waitForPage, withPage } from "./support/browser.ts";
import { Studio } from "./support/server.ts";

const KEY = "a-key-of-sixteen-or-more";

let browser: Browser;

before(async () => {
  browser = await openBrowser();
});

after(() => browser.close());

async function withStudio(options: Parameters<typeof Studio.start>[0], act: (studio: Studio) => Promise<void>) {
  const studio = await Studio.start(options);
  try {
    await act(studio);
  } finally {
    await studio.stop();
  }
}

const settingsOf = async (studio: Studio) =>
  (await studio.request("GET", "/api/v1/settings")) as {
    llm_app_settings: { app_output_protocol: string };
    texts: { fallback: string };
  };

/** Names of the page, by language; the second one is narrow. */
const NAMES = {
  zh: {
    width: 1280, protocol: "输出协议", save: "保存", saved: "设置已保存", limit: "一条回复的字节数（input）", wrong: "服务器不接受此密钥。",
    key: "访问密钥", signIn: "登录", signOut: "退出登录", menu: "打开菜单", less: "只有具有 admin 权限的密钥可以查看和更改。", sections: ["上游", "密钥", "MCP 服务器"],
    fallback: "备用回复", refused: /^此密钥没有权限：/,
  },
  en: {
    width: 390, protocol: "Output protocol", save: "Save", saved: "The settings were saved", limit: "Bytes of one reply (input)",
    wrong: "The server does not accept this key.", key: "Key", signIn: "Sign in", signOut: "Sign out", menu: "Open menu",
    less: "Only a key with the admin right can see and change these.", sections: ["Upstreams", "Keys", "MCP servers"],
    fallback: "Fallback text", refused: "this request needs a key with the `admin` right",
  },
} as const;

for (const [language, names] of Object.entries(NAMES) as ["zh" | "en", (typeof NAMES)["zh" | "en"]][]) {
  const look = { language, width: names.width };

  test(`the output protocol is changed (${language})`, async () => {
    await withStudio({}, async (studio) => {
      await withPage(browser, studio, look, async (page) => {
        await page.goto("/settings");
        await page.getByText(names.limit).waitFor();
        await page.getByLabel(names.protocol).click();
        await page.getByTitle("jsonseq_v1").click();
        await page.getByRole("button", { name: names.save }).click();
        await page.getByText(names.saved).waitFor();
        await assertFits(page);
      });
      assert.equal((await settingsOf(studio)).llm_app_settings.app_output_protocol, "jsonseq_v1");
      // Untouched texts still follow the language.
      await studio.request("PUT", "/api/v1/settings", { text_language: "en" });
      assert.match((await settingsOf(studio)).texts.fallback, /^Sorry/);
    });
  });

  test(`a key is asked for, and one without the admin right sees less (${language})`, async () => {
    await withStudio({ key: KEY }, async (studio) => {
      const response = (await studio.request("POST", "/api/v1/keys", { name: "a designer" })) as { key: string };
      const allow = [/status of 40[13]/];
      await withPage(browser, studio, { ...look, allow }, async (page) => {
        await page.goto("/settings");
        await page.getByLabel(names.key, { exact: true }).fill("wrong");
        await page.getByRole("button", { name: names.signIn }).click();
        await page.getByText(names.wrong).waitFor();
        await assertAccessible(page);
        await page.getByLabel(names.key, { exact: true }).fill(response.key);
        await page.getByRole("button", { name: names.signIn }).click();
        for (const title of names.sections) {
          await page.getByRole("region", { name: title, exact: true }).getByText(names.less).waitFor();
        }
        await waitForPage(page);
        assert.equal(await page.evaluate((key) => JSON.stringify([localStorage, sessionStorage]).includes(key), response.key), false);
        await page.getByLabel(names.fallback).fill("mine");
        await page.getByRole("button", { name: names.save }).click();
        await page.getByText(names.refused).waitFor();
        if (names.width === 390) await page.getByRole("button", { name: names.menu }).click();
        await page.getByRole("button", { name: names.signOut }).click();
        await page.getByRole("heading", { name: names.signIn }).waitFor();
      });
    });
  });
}

test("settings that somebody else changed are not overwritten", async () => {
  await withStudio({}, async (studio) => {
    await withPage(browser, studio, { allow: [/status of 4(?:09|12)/] }, async (page) => {
      await page.goto("/settings");
      await page.getByLabel("Fallback text").fill("mine");
      await studio.request("PUT", "/api/v1/settings", { "texts.fallback": "theirs", thought_display: "hidden" });
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("Somebody else changed the settings in the meantime").waitFor();
      assert.equal(await page.getByLabel("Fallback text").inputValue(), "mine");
      assert.equal((await settingsOf(studio)).texts.fallback, "theirs");
      // Untouched fields show the other user's values; typed ones are saved after that.
      await page.getByText("Folded", { exact: true }).waitFor({ state: "detached" });
      await page.getByText("Hidden", { exact: true }).waitFor();
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The settings were saved").waitFor();
      const now = (await settingsOf(studio)) as { texts: { fallback: string }; thought_display?: string };
      assert.deepEqual([now.texts.fallback, now.thought_display], ["mine", "hidden"]);
    });
  });
});

test("an upstream is tested, and nothing stays of that", async () => {
  await withStudio({}, async (studio) => {
    await withPage(browser, studio, {}, async (page) => {
      await page.goto("/settings");
      await page.getByRole("button", { name: "Test the connection to demo" }).click();
      // The table shows the address, and no secret.
      await page.getByRole("cell", { name: "demo", exact: true }).first().waitFor();
      await page.getByText(/First text after \d+ ms/).waitFor({ timeout: 40_000 });
    });
    const { data } = (await studio.request("GET", "/api/v1/conversations")) as { data: unknown[] };
    assert.deepEqual(data, []);
  });
});

test("an alias is tested with its upstream and model, and told why it fails", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tambour-aliases-"));
  const config = join(folder, "tambour.toml");
  const away = 'kind = "openai"\nurl = "http://127.0.0.1:9/v1"\nmodel = "a-model"\n';
  const aliases = '[aliases.quick]\nupstream = "demo"\n[aliases.far]\nupstream = "away"\nmodel = "m-7"\n';
  writeFileSync(config, `default_upstream = "demo"\n[timeouts]\nattempts = 1\n[upstreams.away]\n${away}${aliases}`);
  try {
    await withStudio({ args: ["--config", config] }, async (studio) => {
      for (const language of ["en", "zh"] as const) {
        await withPage(browser, studio, { language }, async (page) => {
          const name = (alias: string) => (language === "en" ? `Test the alias ${alias}` : `测试别名 ${alias} 的连接`);
          const row = (alias: string) => page.getByRole("row").filter({ has: page.getByRole("button", { name: name(alias) }) });
          await page.goto("/settings");
          await row("quick").getByRole("button").click();
          await row("quick").getByText(language === "en" ? /^demo.*: First text after \d+ ms/ : /^demo.*：\d+ 毫秒后收到首段文本/).waitFor({ timeout: 40_000 });
          await row("far").getByRole("button").click();
          await row("far").getByText(language === "en" ? /^away · m-7: Failed: ./ : /^away · m-7：失败：./).waitFor();
          await assertAccessible(page);
        });
      }
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("tools beyond the first page of the listing are shown", async () => {
  await withStudio({}, async (studio) => {
    const tool = { description: "one of many", schema: { type: "object" }, executor: { kind: "client" } };
    for (let made = 0; made < 210; made += 1) await studio.request("PUT", `/api/v1/tools/tool_${made}`, tool);
    await withPage(browser, studio, {}, async (page) => {
      await page.goto("/settings");
      const tools = page.getByRole("region", { name: "Tools", exact: true }).first();
      await tools.getByRole("cell", { name: "tool_0", exact: true }).waitFor();
      await tools.getByRole("cell", { name: "tool_209", exact: true }).waitFor();
    });
  });
});

test("limits of a key are changed, and taken away", async () => {
  await withStudio({ key: KEY }, async (studio) => {
    const { id } = (await studio.request("POST", "/api/v1/keys", { name: "ci", requests_per_minute: 5 })) as { id: string };
    const limits = async () => {
      const { data } = (await studio.request("GET", "/api/v1/keys")) as { data: Record<string, unknown>[] };
      const found = data.find((key) => key["id"] === id);
      return [found?.["requests_per_minute"], found?.["tokens_per_day"]];
    };
    await withPage(browser, studio, { allow: [/status of 401/] }, async (page) => {
      await page.goto("/settings");
      await page.getByLabel("Key", { exact: true }).fill(KEY);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("button", { name: "Change the key ci" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Requests a minute").fill("");
      await dialog.getByLabel("Tokens a day").fill("700");
      await assertAccessible(page);
      await dialog.getByRole("button", { name: "Save" }).click();
      await page.getByRole("cell", { name: "700" }).waitFor();
      assert.deepEqual(await limits(), [undefined, 700]);
    });
  });
});

test("the first key is made, and asked for from then on", async () => {
  await withStudio({}, async (studio) => {
    await withPage(browser, studio, { allow: [/status of 401/] }, async (page) => {
      await page.goto("/settings");
      await page.getByRole("button", { name: "New key" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name").fill("first");
      await dialog.getByRole("button", { name: "Create" }).click();
      const secret = await dialog.locator("code").first().innerText();
      await assertAccessible(page);
      await dialog.getByRole("button", { name: "Done" }).click();
      await page.getByLabel("Key", { exact: true }).fill(secret.trim());
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    });
  });
});
