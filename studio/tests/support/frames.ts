import { type Browser, type Page } from "playwright-core";

/** Length of a measurement, in milliseconds. */
const MS = 2000;

/** Measures the frames a second of a page while the list with that label, if any, is scrolled. */
async function rateOf(page: Page, label: string | null): Promise<number> {
  return page.evaluate(
    async ({ label: name, ms }) => {
      const box = name === null ? null : document.querySelector(`[role=listbox][aria-label="${name}"]`);
      if (name !== null && box === null) throw new Error(`there is no list ${name}`);
      const start = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
      let frames = 0;
      let now = start;
      while (now - start < ms) {
        if (box !== null) box.scrollTop += 180;
        now = await new Promise<number>((resolve) => requestAnimationFrame(resolve));
        frames += 1;
      }
      return (frames * 1000) / (now - start);
    },
    { label, ms: MS },
  );
}

/** Frames a second while a list is scrolled. */
export const scrollingRate = (page: Page, label: string): Promise<number> => rateOf(page, label);

/** Frames a second of an empty page: the limit of this machine and its browser. */
export async function emptyRate(browser: Browser): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  try {
    return await rateOf(await context.newPage(), null);
  } finally {
    await context.close();
  }
}

/** Least accepted rate of scrolling: 50 frames a second, or nine tenths of an empty page that has no 55 itself. */
export const minRate = (empty: number): number => (empty < 55 ? empty * 0.9 : 50);
