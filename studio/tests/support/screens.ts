import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Page } from "playwright-core";
import { type Studio } from "./server.ts";

/** State of the studio to check or picture: a file in `tests/screens` exports the ones of a page as `screens`. */
export type Screen = {
  name: string;
  /** Prepares the screen, and returns its path. */
  path: string | ((studio: Studio) => Promise<string>);
  /** Actions on the page before it is checked or pictured. */
  act?: (page: Page, studio: Studio) => Promise<void>;
  /** Expected errors in the console. */
  allow?: readonly RegExp[];
};

/** Screens of all pages. */
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
