// @vitest-environment jsdom
import { describe, expect, it } from "vitest";
import { kindOfAddress } from "./address.ts";
import { renderMarkdown } from "./render.ts";
import { allowedStyle } from "./sanitize.ts";

const render = (text: string) => renderMarkdown(text, (alt) => `image ${alt}`);
const body = (text: string) => new DOMParser().parseFromString(render(text), "text/html").body;

describe("addresses", () => {
  it.each([
    ["assets/forest.jpg", "relative"],
    ["https://example.com/a?b#c", "https"],
    ["asset:forest", "asset"],
    ["http://example.com", null],
    ["//example.com/a", null],
    ["/api/v1/settings", null],
    ["javascript:alert(1)", null],
    ["java\tscript:alert(1)", null],
    ["%6aavascript:alert(1)", null],
    ["data:text/html,x", null],
    ["a/../b", null],
    ["a/%2e%2e/b", null],
    ["https:///x", null],
    ["", null],
  ])("%s is %s", (address, kind) => expect(kindOfAddress(address)).toBe(kind));
});

describe("styles", () => {
  it.each([
    ["color: red; background-color: #fff", "color: red; background-color: #fff"],
    ["COLOR: Red !important", "color: red"],
    ["color: url(https://x)", ""],
    ["position: fixed; font-weight: 700", "font-weight: 700"],
    ["color: expression(alert(1))", ""],
    ["text-decoration: underline wavy #f00", "text-decoration: underline wavy #f00"],
    ["constructor: x", ""],
  ])("%s keeps %s", (style, kept) => expect(allowedStyle(style)).toBe(kept));
});

describe("Markdown", () => {
  it("formats", () => {
    expect(render("# A\n\n**b** `c`")).toBe("<h1>A</h1>\n<p><strong>b</strong> <code>c</code></p>\n");
  });

  it("keeps inline tags of the list, and shows others as written", () => {
    expect(render('<span style="color:red" onclick="x()">a</span><ruby>b<rt>c</rt></ruby>')).toBe(
      '<p><span style="color: red">a</span><ruby>b<rt>c</rt></ruby></p>\n',
    );
    expect(body("<div>a</div> <form>b</form>").textContent).toContain("<div>a</div> <form>b</form>");
  });

  it.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<math><mtext><img src=x onerror=alert(1)></mtext></math>",
    "[a](javascript:alert(1))",
    "[a](<java&#115;cript:alert(1)>)",
    "<a href='javascript:alert(1)'>a</a>",
    "<span style='background:url(javascript:alert(1))'>a</span>",
    "<b onmouseover=alert(1)>a</b>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "![a](data:text/html;base64,PHNjcmlwdD4=)",
    '<u title="</u><img src=x onerror=alert(1)>">a</u>',
  ])("runs nothing of %s", (text) => {
    const made = body(text);
    expect(made.querySelector("script, iframe, svg, math, form, object, embed, style, link, meta, base")).toBeNull();
    for (const element of made.querySelectorAll("*")) {
      for (const { name, value } of element.attributes) {
        expect(name).not.toMatch(/^on/);
        if (name === "href" || name === "src") expect(kindOfAddress(value)).not.toBeNull();
      }
    }
  });

  it("asks no other host for pictures", () => {
    expect(body("![a view](https://example.com/a.png)").querySelector("img")).toBeNull();
    const link = body("![a view](https://example.com/a.png)").querySelector("a");
    expect(link?.textContent).toBe("image a view");
    expect(link?.rel).toContain("noreferrer");
  });

  it("opens links apart", () => {
    const link = body("[a](https://example.com)").querySelector("a");
    expect([link?.target, link?.rel]).toEqual(["_blank", "noopener noreferrer nofollow"]);
  });
});
