import { PlayCircleOutlined } from "@ant-design/icons";
import { Alert, Button } from "antd";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { useNavigate, useSearchParams } from "react-router";
import { ApiError, isAbort } from "../../../api/errors.ts";
import { type Diagnostic } from "../../../components/CodeEditor.tsx";
import { EmptyState } from "../../../components/EmptyState.tsx";
import { ErrorState } from "../../../components/ErrorState.tsx";
import { useProblemText } from "../../../components/useProblemText.ts";
import { preview } from "../../../i18n/texts/preview.ts";
import { useText } from "../../../i18n/useText.ts";
import { PromptsFrame } from "../PromptsFrame.tsx";
import { IngredientsForm } from "./IngredientsForm.tsx";
import { keptIngredients, keepIngredients } from "./keptIngredients.ts";
import { keepSkein, keptSkein } from "./keptSkein.ts";
import styles from "./PreviewPage.module.css";
import { PromptResult } from "./PromptResult.tsx";
import { hasIngredients, type Ingredients, type Rendered, renderPrompt, variablesOf } from "./renderPrompt.ts";

type Outcome = { readonly of: Ingredients; readonly rendered: Rendered | null; readonly error: Error | null };

/** Preview of the prompt that a card, lorebooks and a Skein produce. */
export function Component() {
  const t = useText(preview);
  const { line } = useProblemText();
  const navigate = useNavigate();
  const [params, setParams] = useSearchParams();
  const [typed, setTyped] = useState(() => ({ ...keptIngredients(), skein: keptSkein() }));
  const [busy, setBusy] = useState(false);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const result = useRef<HTMLDivElement>(null);
  const given: Ingredients = {
    ...typed,
    card: params.get("card"),
    books: (params.get("books") ?? "").split(",").filter((id) => id !== ""),
  };

  function change(part: Partial<Ingredients>): void {
    const { card, books, ...rest } = part;
    if (card !== undefined || books !== undefined) {
      const next = new URLSearchParams();
      const nextCard = card === undefined ? given.card : card;
      const nextBooks = books ?? given.books;
      if (nextCard !== null) next.set("card", nextCard);
      if (nextBooks.length > 0) next.set("books", nextBooks.join(","));
      setParams(next, { replace: true });
    }
    const next = { ...typed, ...rest };
    setTyped(next);
    keepIngredients(next);
    if (rest.skein !== undefined) keepSkein(rest.skein);
  }

  async function render(): Promise<void> {
    setBusy(true);
    const told = await outcomeOf(given);
    flushSync(() => {
      setOutcome(told);
      setBusy(false);
    });
    // In one column the result is out of sight, below the form.
    if (window.matchMedia("(max-width: 1000px)").matches) result.current?.scrollIntoView();
  }

  // A URL with a card or a book renders its prompt at once.
  const first = useEffectEvent((signal: AbortSignal) => {
    if (!hasIngredients(given)) return;
    outcomeOf(given, signal).then(
      (told) => setOutcome(told),
      () => undefined,
    );
  });
  useEffect(() => {
    const stop = new AbortController();
    first(stop.signal);
    return () => stop.abort();
  }, []);

  const fault = faultOf(given.variables);
  return (
    <PromptsFrame purpose={t("purpose")}>
      <div className={styles["columns"]}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void render();
          }}
        >
          <IngredientsForm given={given} diagnostics={diagnosticsOf(outcome?.error ?? null)} onChange={change} />
          {fault !== null && <Alert className={styles["fault"] ?? ""} type="error" title={t("brokenVariables", { reason: fault })} />}
          <div className={styles["bar"]}>
            <Button
              type="primary"
              size="large"
              block
              htmlType="submit"
              icon={<PlayCircleOutlined />}
              loading={busy}
              disabled={!hasIngredients(given) || fault !== null}
            >
              {t("render")}
            </Button>
          </div>
        </form>
        <div ref={result} className={styles["result"]}>
          {outcome === null && (
            <EmptyState
              title={t("nothingYet")}
              hint={t("nothingYetHint")}
              action={<Button onClick={() => void navigate("/prompts/imports")}>{t("importFirst")}</Button>}
            />
          )}
          {outcome?.error instanceof ApiError && !outcome.error.isUnreachable && outcome.error.status === 422 ? (
            <Alert type="error" role="alert" title={t("notRendered")} description={line(outcome.error)} />
          ) : (
            outcome?.error instanceof ApiError && <ErrorState error={outcome.error} onRetry={() => void render()} />
          )}
          {outcome?.error != null && !(outcome.error instanceof ApiError) && (
            <Alert type="error" role="alert" title={t("notRendered")} description={outcome.error.message} />
          )}
          {outcome?.rendered != null && (
            <PromptResult rendered={outcome.rendered} given={outcome.of} />
          )}
        </div>
      </div>
    </PromptsFrame>
  );
}

/** Renders, and returns the result. A cancelled rendering has none. */
async function outcomeOf(given: Ingredients, signal?: AbortSignal): Promise<Outcome> {
  try {
    return { of: given, rendered: await renderPrompt(given, signal), error: null };
  } catch (error) {
    if (isAbort(error)) throw error;
    return { of: given, rendered: null, error: error instanceof Error ? error : new Error(String(error)) };
  }
}

function faultOf(variables: string): string | null {
  try {
    variablesOf(variables);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Place of a fault in the Skein. */
function diagnosticsOf(error: Error | null): Diagnostic[] {
  // Other errors have places in the template of a block.
  if (!(error instanceof ApiError) || error.code !== "invalid_skein") return [];
  const { line, column } = error.problem as { line?: unknown; column?: unknown };
  if (typeof line !== "number") return [];
  return [{ line, column: typeof column === "number" ? column : null, severity: "error", message: error.detail }];
}
