import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import ts from "typescript";

const STUDIO = join(import.meta.dirname, "..");
const read = (path: string) => readFileSync(join(STUDIO, path), "utf8");

it("S-107: all of the studio passes the strict compiler and the linter without findings, before anything is merged", () => {
  const { config } = ts.readConfigFile(join(STUDIO, "tsconfig.json"), (path) => readFileSync(path, "utf8")) as {
    config: { compilerOptions: Record<string, unknown>; include: string[]; exclude?: string[] };
  };
  expect(config.compilerOptions["strict"]).toBe(true);
  expect(config.include).toEqual(expect.arrayContaining(["src", "tests", "scripts"]));
  expect(config.exclude).toBeUndefined();
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  expect([scripts["typecheck"], scripts["lint"]]).toEqual(["tsc", "eslint --max-warnings 0 ."]);
  const checks = read("../xtask/start/src/test.rs");
  for (const script of ["typecheck", "lint"]) expect(checks).toContain(`&["run", "--silent", "${script}"]`);
});
