import { CopyOutlined, SwapOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { useState } from "react";
import { api } from "../../../api/client.ts";
import { CodeEditor, type Diagnostic } from "../../../components/CodeEditor.tsx";
import { EmptyState } from "../../../components/EmptyState.tsx";
import { Section } from "../../../components/Section.tsx";
import { useProblemText } from "../../../components/useProblemText.ts";
import { macros } from "../../../i18n/texts/macros.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { useText } from "../../../i18n/useText.ts";
import { SideBySide } from "../diff/SideBySide.tsx";
import { PromptsFrame } from "../PromptsFrame.tsx";
import { useCopy } from "../useCopy.ts";
import styles from "./MacrosPage.module.css";
import { type Migrated, readMigration } from "./migration.ts";

const EXAMPLE = [
  "{{char}} greets {{user}}. It is {{time}}.",
  "{{setvar::mood::calm}}{{if mood}}The mood is {{getvar::mood}}.{{/if}}",
  "Throw {{roll:2d6}} and pick {{random::a lamp::a rope}}.",
  "{{unknown::x}}",
].join("\n");

/** Page that translates macros of other programs to templates, and lists the changes. */
export function Component() {
  const t = useText(macros);
  const shared = useText(prompts);
  const copy = useCopy();
  const { lineOf } = useProblemText();
  const { message } = App.useApp();
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [migrated, setMigrated] = useState<Migrated | null>(null);

  async function migrate(): Promise<void> {
    setBusy(true);
    try {
      const { data } = await api.post("/api/v1/macros/migrate", { text });
      setMigrated(readMigration(text, data));
    } catch (error) {
      void message.error(lineOf(error));
    }
    setBusy(false);
  }

  const marks: Diagnostic[] =
    migrated?.original === text
      ? migrated.warnings.flatMap(({ line, column, message: words, code }) =>
          line === undefined ? [] : [{ line, column, severity: "warning" as const, message: words, code }],
        )
      : NONE;
  return (
    <PromptsFrame purpose={t("purpose")}>
      <Section
        title={t("text")}
        actions={
          text === "" ? (
            <Button size="small" onClick={() => setText(EXAMPLE)}>
              {t("example")}
            </Button>
          ) : undefined
        }
      >
        <CodeEditor label={t("text")} value={text} onChange={setText} diagnostics={marks} height="min(34vh, 300px)" />
        <div className={styles["actions"]}>
          <Button
            type="primary"
            icon={<SwapOutlined />}
            loading={busy}
            disabled={text.trim() === ""}
            onClick={() => void migrate()}
          >
            {t("migrate")}
          </Button>
        </div>
      </Section>
      {migrated === null ? (
        <EmptyState title={t("nothing")} hint={t("nothingHint")} />
      ) : (
        <>
          <Section
            title={t("compare")}
            hint={
              <span role="status">
                {migrated.translated === 0 && migrated.left === 0
                  ? t("same")
                  : `${t("translated", { count: migrated.translated })} · ${t("left", { count: migrated.left })}`}
              </span>
            }
            actions={
              <Button size="small" icon={<CopyOutlined />} onClick={() => void copy(migrated.text)}>
                {shared("copy")}
              </Button>
            }
          >
            <SideBySide
              before={migrated.original}
              after={migrated.text}
              beforeLabel={t("before")}
              afterLabel={t("after")}
            />
          </Section>
          <div className={styles["columns"]}>
            <Section title={t("warnings")}>
              {migrated.warnings.length === 0 ? (
                <p className={styles["hint"]}>{t("noWarnings")}</p>
              ) : (
                <ul className={styles["warnings"]}>
                  {migrated.warnings.map(({ message: words, line, column = 1, code }, index) => (
                    <li key={index}>
                      {words}{" "}
                      <small>
                        {code}
                        {line !== undefined && <> · {shared("at", { line, column })}</>}
                      </small>
                    </li>
                  ))}
                </ul>
              )}
            </Section>
            {migrated.rules.length > 0 && (
              <Section title={t("rules")}>
                <table className={styles["rules"]}>
                  <thead>
                    <tr>
                      <th scope="col">{t("rule")}</th>
                      <th scope="col">{t("times")}</th>
                    </tr>
                  </thead>
                  <tbody>
                    {migrated.rules.map(([rule, times]) => (
                      <tr key={rule}>
                        <td>
                          <code>{rule}</code>
                        </td>
                        <td>{times}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </Section>
            )}
          </div>
        </>
      )}
    </PromptsFrame>
  );
}

const NONE: Diagnostic[] = [];
