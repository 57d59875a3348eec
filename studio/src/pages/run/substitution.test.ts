import { describe, expect, it } from "vitest";
import { substituted } from "./substitution.ts";

const markValues = (template: string, prompt: string) =>
  substituted(template, prompt)?.map(({ text, name }) => (name === null ? text : `[${name}=${text}]`)).join("");

describe("a prompt", () => {
  it("tells what was put in, and for what", () => {
    expect(markValues("你是 {%who%}，学历{教育背景}。", "你是 李医生，学历本科。")).toBe("你是 [who=李医生]，学历[教育背景=本科]。");
  });

  it("ends with a value, begins with one, or has two side by side", () => {
    expect(markValues("{a}: {b}", "x: y: z")).toBe("[a=x]: [b=y: z]");
    expect(markValues("{a}", "all of it")).toBe("[a=all of it]");
    expect(markValues("{a}{b}.", "xy.")).toBe("[a=][b=xy].");
  });

  it("keeps what stands behind the template", () => {
    expect(markValues("Hi {name}!", "Hi Ann!\nOnce more.")).toBe("Hi [name=Ann]!\nOnce more.");
  });

  it("takes braces of JSON for text", () => {
    expect(markValues('{\n "a": 1\n} {x}', '{\n "a": 1\n} v')).toBe('{\n "a": 1\n} [x=v]');
  });

  it("of another template is not marked", () => {
    expect(substituted("Hello {x}", "Good day")).toBeNull();
  });
});
