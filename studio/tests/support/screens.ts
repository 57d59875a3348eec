import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Page } from "playwright-core";
import { type Studio } from "./server.ts";

/** A state of the studio that is looked at: a file in `tests/screens` exports those of one page as `screens`. */
export type Screen = {
  name: string;
  /** Makes what is shown, and gives the path of it. */
  path: string | ((studio: Studio) => Promise<string>);
  /** What is done on the page before it is looked at. */
  act?: (page: Page, studio: Studio) => Promise<void>;
  /** Errors in the console that belong to it. */
  allow?: readonly RegExp[];
};

/** The screens of all pages. */
export async function allScreens(): Promise<Screen[]> {
  const folder = join(import.meta.dirname, "../screens");
  const files = readdirSync(folder).sort();
  const modules = await Promise.all(
    files.map(async (file) => (await import(pathToFileURL(join(folder, file)).href)) as { screens: Screen[] }),
  );
  return modules.flatMap(({ screens }) => screens);
}

export const pathOf = (screen: Screen, studio: Studio): Promise<string> =>
  typeof screen.path === "string" ? Promise.resolve(screen.path) : screen.path(studio);
