import { Empty, Input } from "antd";
import { useMemo, useState } from "react";
import { Section } from "../../../components/Section.tsx";
import { templates } from "../../../i18n/texts/templates.ts";
import { useText } from "../../../i18n/useText.ts";
import styles from "./FilledPrompt.module.css";
import { fill, type Filled, keyOf, type Piece, SYSTEM_NAMES, variablesOf } from "./templateText.ts";

type FilledProps = { id: string; pieces: readonly Piece[] };

/** Most displayed characters of a filled prompt. */
const SHOWN = 200_000;

/** Variables of a template with typed values, and the resulting prompt. */
export function FilledPrompt({ id, pieces }: FilledProps) {
  const t = useText(templates);
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() => keptValues(id));
  const variables = useMemo(() => variablesOf(pieces), [pieces]);
  const filled = useMemo(() => fill(pieces, values), [pieces, values]);
  const open = new Set(filled.filter(({ kind }) => kind === "open").map(({ key }) => key)).size;

  function change(key: string, value: string): void {
    const next = { ...values, [key]: value };
    setValues(next);
    keepValues(id, next);
  }

  const shown = useMemo(() => beginningOf(filled, SHOWN), [filled]);
  return (
    <div className={styles["columns"]}>
      <Section title={t("variables")}>
        {variables.length === 0 ? (
          <Empty image={null} description={t("noVariables")} />
        ) : (
          <ul className={styles["list"]}>
            {variables.map((variable) => {
              const key = keyOf(variable);
              const unknown = variable.layer === "system" && !SYSTEM_NAMES.includes(variable.name);
              return (
                <li key={key}>
                  <div className={styles["name"]}>
                    <code className={styles[unknown ? "unknown" : variable.layer]}>{key}</code>
                    <small>
                      {t(variable.layer === "script" ? "ofScript" : "ofSystem")}
                      {" · "}
                      {t("uses", { count: variable.uses })}
                    </small>
                  </div>
                  <Input.TextArea
                    aria-label={t("valueOf", { name: key })}
                    autoSize={{ minRows: 1, maxRows: 6 }}
                    value={values[key] ?? ""}
                    onChange={({ target }) => change(key, target.value)}
                  />
                </li>
              );
            })}
          </ul>
        )}
      </Section>
      <Section
        title={t("filled")}
        hint={t("filledHint")}
        actions={
          <span role="status" className={open > 0 ? styles["open_count"] : styles["done"]}>
            {open > 0 ? t("open_count", { count: open }) : t("allFilled")}
          </span>
        }
      >
        {/* Keys scroll the focused element. */}
        {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <pre className={styles["prompt"]} tabIndex={0} role="region" aria-label={t("filled")}>
          {shown.map(({ kind, text }, index) =>
            kind === "text" ? (
              text
            ) : (
              <mark key={index} className={styles[kind]}>
                {text}
              </mark>
            ),
          )}
        </pre>
      </Section>
    </div>
  );
}

/** Parts of a filled prompt up to a number of characters. */
function beginningOf(parts: readonly Filled[], most: number): Filled[] {
  const ends: number[] = [];
  for (const { text } of parts) ends.push((ends.at(-1) ?? 0) + text.length);
  return parts.filter((_, index) => (ends[index - 1] ?? 0) < most);
}

const storageKey = (id: string): string => `tambour.template-values.${id}`;

function keptValues(id: string): Record<string, string> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(storageKey(id)) ?? "{}");
    if (typeof value !== "object" || value === null) return {};
    return Object.fromEntries(Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === "string"));
  } catch {
    return {};
  }
}

function keepValues(id: string, values: Readonly<Record<string, string>>): void {
  try {
    localStorage.setItem(storageKey(id), JSON.stringify(values));
  } catch {
    // Values stay on the page.
  }
}
