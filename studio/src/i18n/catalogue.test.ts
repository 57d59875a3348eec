import { readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { preferredLanguage } from "./language.ts";
import { type Area, fill } from "./texts.ts";
import { problems } from "./texts/problems.ts";

const SOURCE = join(import.meta.dirname, "..");
const TEXTS = join(SOURCE, "i18n", "texts");

const areas = import.meta.glob<Record<string, Area>>("./texts/*.ts", { eager: true });

type Source = { path: string; syntax: ts.SourceFile };

const sources: Source[] = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.tsx?$/.test(path) && !/\.(?:test|d)\.tsx?$/.test(path))
  .map((path) => {
    const full = join(SOURCE, path);
    const kind = path.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
    const syntax = ts.createSourceFile(full, readFileSync(full, "utf8"), ts.ScriptTarget.Latest, true, kind);
    return { path: full, syntax };
  });

const shownPath = (path: string) => relative(SOURCE, path).split(sep).join("/");
const outside = sources.filter(({ path }) => !path.startsWith(TEXTS));

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  ts.forEachChild(node, (child) => visit(child, see));
}

function place(source: Source, node: ts.Node): string {
  const { line } = source.syntax.getLineAndCharacterOfPosition(node.getStart());
  return `${shownPath(source.path)}:${line + 1}: ${node.getText().trim().slice(0, 60)}`;
}

/** Members of unions anywhere: a key may be the value of such a type. */
const literalTypes: string[] = [];
for (const { syntax } of outside) {
  visit(syntax, (node) => {
    if (ts.isLiteralTypeNode(node) && ts.isStringLiteral(node.literal)) literalTypes.push(node.literal.text);
  });
}

const names = (text: string) => [...text.matchAll(/\{(\w+)/g)].map((match) => match[1]).sort();

/** Languages written in themselves, and names of the product. */
const SAME_IN_ALL = new Set(["Tambour", "· Tambour", "English", "中文"]);

const HAN = /\p{Script=Han}/u;
const WORDS = /\p{L}{2,}/u;

/** Attributes and fields with text for people. */
const VISIBLE_FIELDS = new Set([
  "title", "label", "placeholder", "alt", "aria-label", "aria-description", "description", "tooltip", "message", "hint",
  "purpose", "okText", "cancelText", "subTitle", "content", "emptyText", "checkedChildren", "unCheckedChildren", "help",
  "extra", "addonBefore", "addonAfter", "suffix", "prefix", "header", "footer", "tip", "summary", "text",
]);

/** Visible strings that need no translation: identifiers, units and the like. */
const IDENTIFIER = /^[a-z0-9_.:/#-]*$/;

describe.each(Object.entries(areas))("%s", (path, module) => {
  const texts = Object.values(module)[0] ?? {};
  const file = join(TEXTS, path.split("/").at(-1) ?? "");

  it("has every text in both languages, with the same parameters", () => {
    for (const [key, { zh, en }] of Object.entries(texts)) {
      expect(zh.trim(), `${key}, Chinese`).not.toBe("");
      expect(en.trim(), `${key}, English`).not.toBe("");
      expect(HAN.test(en), `${key}: Chinese in the English text`).toBe(false);
      expect(new Set(names(zh)), key).toEqual(new Set(names(en)));
    }
  });

  it("has no text that nothing uses", () => {
    const users = outside.filter(({ syntax }) =>
      syntax.statements.some(
        (statement) =>
          ts.isImportDeclaration(statement) &&
          ts.isStringLiteral(statement.moduleSpecifier) &&
          join(syntax.fileName, "..", statement.moduleSpecifier.text) === file,
      ),
    );
    const used = new Set(literalTypes);
    const [name = ""] = Object.keys(module);
    // The whole area is passed on, as the editor's phrases are.
    const whole = new Set([`Object.values(${name})`, `Object.entries(${name})`]);
    for (const { syntax } of users) {
      visit(syntax, (node) => {
        if (ts.isStringLiteralLike(node)) used.add(node.text);
        if (ts.isCallExpression(node) && whole.has(node.getText())) Object.keys(texts).forEach((key) => used.add(key));
      });
    }
    expect(Object.keys(texts).filter((key) => !used.has(key))).toEqual([]);
  });
});

describe("texts in the source", () => {
  it("come from the catalogue", () => {
    const found: string[] = [];
    for (const source of outside) {
      visit(source.syntax, (node) => {
        if (ts.isJsxText(node) && WORDS.test(node.text)) found.push(place(source, node));
        if (!ts.isStringLiteralLike(node) && !ts.isTemplateExpression(node)) return;
        const text = ts.isStringLiteralLike(node) ? node.text : [node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join("");
        if (SAME_IN_ALL.has(text.trim())) return;
        const { parent } = node;
        if (HAN.test(text)) found.push(place(source, node));
        else if (isVisibleText(parent, node) && WORDS.test(text) && !IDENTIFIER.test(text)) found.push(place(source, node));
      });
    }
    expect(found).toEqual([]);
  });
});

/** True if a literal is displayed by an element, or is a value of an attribute or a field with text for people. */
function isVisibleText(parent: ts.Node, node: ts.Node): boolean {
  if (ts.isConditionalExpression(parent) && parent.condition !== node) return isVisibleText(parent.parent, parent);
  if (ts.isParenthesizedExpression(parent)) return isVisibleText(parent.parent, parent);
  if (ts.isBinaryExpression(parent) && ["??", "||", "&&"].includes(parent.operatorToken.getText())) {
    return isVisibleText(parent.parent, parent);
  }
  if (ts.isJsxExpression(parent)) {
    return ts.isJsxAttribute(parent.parent) ? VISIBLE_FIELDS.has(parent.parent.name.getText()) : true;
  }
  if (ts.isJsxAttribute(parent)) return VISIBLE_FIELDS.has(parent.name.getText());
  if (ts.isPropertyAssignment(parent)) return source(parent).endsWith("x") && VISIBLE_FIELDS.has(parent.name.getText());
  return false;
}

const source = (node: ts.Node): string => node.getSourceFile().fileName;

describe("a problem", () => {
  it("that has words of its own is one of the server's", () => {
    const page = readFileSync(join(SOURCE, "../../docs/http-api.md"), "utf8");
    expect(Object.keys(problems).filter((code) => !page.includes(`\`${code}\``))).toEqual([]);
  });
});

describe("a text", () => {
  it("takes parameters, numbers as the language writes them", () => {
    expect(fill("{count} {count:file|files} of {name}", { count: 1200, name: "a" }, "en-GB")).toBe("1,200 files of a");
    expect(fill("{count} {count:file|files}", { count: 1 })).toBe("1 file");
    expect(fill("{lost}", {})).toBe("{lost}");
  });

  it("is in the first language of the browser that there is", () => {
    expect(preferredLanguage(["fr-FR", "zh-TW", "en"])).toBe("zh");
    expect(preferredLanguage(["en-US", "zh"])).toBe("en");
    expect(preferredLanguage(["fr"])).toBe("en");
  });
});
