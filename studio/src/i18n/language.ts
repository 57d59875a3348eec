export type Language = "zh" | "en";

export const LANGUAGES: readonly Language[] = ["zh", "en"];

/** Locale for numbers and dates. */
export const LOCALES: Record<Language, string> = { zh: "zh-CN", en: "en-GB" };

/** First browser language that the studio has; otherwise English. */
export function preferredLanguage(languages: readonly string[]): Language {
  for (const tag of languages) {
    const primary = tag.toLowerCase().split("-")[0];
    if (primary === "zh" || primary === "en") return primary;
  }
  return "en";
}
