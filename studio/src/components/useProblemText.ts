import { useCallback } from "react";
import { ApiError } from "../api/errors.ts";
import { common } from "../i18n/texts/common.ts";
import { problems } from "../i18n/texts/problems.ts";
import { type Entry } from "../i18n/texts.ts";
import { useLanguage, useText } from "../i18n/useText.ts";

const KNOWN = new Map<string, Entry>(Object.entries(problems));

/**
 * Texts for a refused request: `headline` states the problem in the user's language, `line` adds the server's detail;
 * `lineOf` accepts errors of any kind.
 */
export function useProblemText() {
  const language = useLanguage();
  const t = useText(common);
  const headline = useCallback(
    (error: ApiError): string => {
      if (error.isUnreachable) return t("disconnected");
      const known = KNOWN.get(error.code);
      if (known !== undefined) return known[language];
      if (error.status === 403) return t("forbidden");
      if (error.status === 404) return t("missing");
      return t("failed");
    },
    [language, t],
  );
  const line = useCallback(
    // The server's details are English.
    (error: ApiError): string => (language === "en" ? error.detail : t("headlineWith", { headline: headline(error), detail: error.detail })),
    [language, headline, t],
  );
  const lineOf = useCallback(
    (error: unknown): string => (error instanceof ApiError ? line(error) : error instanceof Error ? error.message : String(error)),
    [line],
  );
  return { headline, line, lineOf };
}
