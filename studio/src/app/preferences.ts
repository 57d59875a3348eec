import { useSyncExternalStore } from "react";
import { type Language, preferredLanguage } from "../i18n/language.ts";

export type ThemeChoice = "light" | "dark" | "system";

export type Preferences = { readonly language: Language; readonly theme: ThemeChoice };

const STORAGE_KEY = "tambour.preferences";
const listeners = new Set<() => void>();

function stored(): Partial<Preferences> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    if (typeof value !== "object" || value === null) return {};
    const { language, theme } = value as Record<string, unknown>;
    return {
      ...(language === "zh" || language === "en" ? { language } : {}),
      ...(theme === "light" || theme === "dark" || theme === "system" ? { theme } : {}),
    };
  } catch {
    return {};
  }
}

let preferences: Preferences = {
  language: preferredLanguage(navigator.languages),
  theme: "system",
  ...stored(),
};

/** Changes preferences, and stores the user's choices in the browser. */
export function prefer(change: Partial<Preferences>): void {
  preferences = { ...preferences, ...change };
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify({ ...stored(), ...change }));
  } catch {
    // A browser without storage asks again next time.
  }
  listeners.forEach((listener) => listener());
}

/** Language of the page as it is now. */
export const currentLanguage = (): Language => preferences.language;

// A choice in one tab holds in the others at once.
window.addEventListener("storage", ({ key }) => {
  if (key !== STORAGE_KEY) return;
  preferences = { ...preferences, ...stored() };
  listeners.forEach((listener) => listener());
});

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function usePreferences(): Preferences {
  return useSyncExternalStore(subscribe, () => preferences);
}

const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");

function subscribeDark(listener: () => void): () => void {
  darkQuery.addEventListener("change", listener);
  return () => darkQuery.removeEventListener("change", listener);
}

/** True if the dark theme is active, by choice or by the system. */
export function useDark(): boolean {
  const { theme } = usePreferences();
  const systemDark = useSyncExternalStore(subscribeDark, () => darkQuery.matches);
  return theme === "system" ? systemDark : theme === "dark";
}
