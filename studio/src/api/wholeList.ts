import { type ListPage } from "./useCursorList.ts";

/** Most pages of a listing that are loaded for a select box. */
const MOST_PAGES = 100;

/** Loads all rows of a listing, page by page, for a select box. */
export async function wholeList<T>(
  load: (after: string | undefined) => Promise<ListPage<T>>,
  cursorOf: (row: T) => string,
): Promise<T[]> {
  const rows: T[] = [];
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const last = rows.at(-1);
    const { data, has_more: more } = await load(last === undefined ? undefined : cursorOf(last));
    rows.push(...data);
    if (!more || data.length === 0) break;
  }
  return rows;
}
