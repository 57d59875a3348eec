import { createContext, use, useCallback } from "react";
import { type Language, LOCALES } from "./language.ts";
import { type Area, fill, type Parameters, type Values } from "./texts.ts";

export const LanguageContext = createContext<Language>("en");

export function useLanguage(): Language {
  return use(LanguageContext);
}

/** Texts of an area in the language of the user. */
export type Translate<A extends Area> = <K extends keyof A & string>(key: K, ...values: Parameters<A[K]>) => string;

/** Text function of an area: `const t = useText(scripts); t("title")`. */
export function useText<A extends Area>(area: A): Translate<A> {
  const language = useLanguage();
  return useCallback(
    (key, ...values) => fill(area[key]?.[language] ?? key, values[0] as Values | undefined, LOCALES[language]),
    [area, language],
  );
}

/** Numbers, times and sizes in the format of the user's language. */
export function useFormat() {
  const locale = LOCALES[useLanguage()];
  return {
    number: (value: number, digits = 0) => value.toLocaleString(locale, { maximumFractionDigits: digits }),
    percent: (value: number) => value.toLocaleString(locale, { style: "percent", maximumFractionDigits: 1 }),
    time: (value: string | number | Date) =>
      new Date(value).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" }),
    day: (value: string | number | Date) => new Date(value).toLocaleDateString(locale, { dateStyle: "medium" }),
    bytes: (value: number) => {
      const units = ["B", "kB", "MB", "GB"];
      const step = Math.min(units.length - 1, value < 1000 ? 0 : Math.floor(Math.log10(value) / 3));
      return `${(value / 1000 ** step).toLocaleString(locale, { maximumFractionDigits: 1 })} ${units[step] ?? ""}`;
    },
  };
}
