import { CopyOutlined } from "@ant-design/icons";
import { Alert, Button, Tag } from "antd";
import { useMemo } from "react";
import { KeyValue } from "../../../components/KeyValue.tsx";
import { LongText } from "../../../components/LongText.tsx";
import { Section } from "../../../components/Section.tsx";
import { preview } from "../../../i18n/texts/preview.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { useText } from "../../../i18n/useText.ts";
import { useCopy } from "../useCopy.ts";
import { blocksOf } from "./blocks.ts";
import styles from "./PromptResult.module.css";
import { Parts } from "./Parts.tsx";
import { type Ingredients, type Rendered } from "./renderPrompt.ts";
import { WokenLore } from "./WokenLore.tsx";
import { yamlOf } from "./yaml.ts";

/** Rendered prompt: messages, tokens of its parts, omissions, and active world info. */
export function PromptResult({ rendered, given }: { rendered: Rendered; given: Ingredients }) {
  const t = useText(preview);
  const shared = useText(prompts);
  const copy = useCopy();
  const { tokens, over, warnings, effects, text } = rendered;
  return (
    <>
      <Section
        title={t("result")}
        actions={
          <span className={styles["summary"]}>
            <strong role="status">{t("tokens", { count: tokens })}</strong>
            <Button size="small" icon={<CopyOutlined />} onClick={() => void copy(text)}>
              {shared("copy")}
            </Button>
          </span>
        }
      >
        {over && <Alert className={styles["over"] ?? ""} type="warning" showIcon title={t("over")} />}
        <Messages rendered={rendered} />
        <details className={styles["more"]}>
          <summary>{t("whole")}</summary>
          <p className={styles["hint"]}>{t("wholeHint")}</p>
          <LongText text={text} label={t("whole")} fileName="prompt.txt" />
        </details>
      </Section>
      <Section title={t("parts")} hint={t("partsHint")}>
        <Parts parts={rendered.parts} />
      </Section>
      <WokenLore rendered={rendered} given={given} />
      {warnings.length > 0 && (
        <Section title={t("warnings")}>
          <ul className={styles["list"]}>
            {warnings.map(({ message, code, line, column }, index) => (
              <li key={index} className={styles["warning"]}>
                {message}{" "}
                <span className={styles["hint"]}>
                  {code}
                  {typeof line === "number" && <> {shared("at", { line, column: column ?? 1 })}</>}
                </span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {effects.length > 0 && (
        <Section title={t("effects")}>
          <LongText text={yamlOf(effects)} label={t("effects")} maxHeight={240} />
        </Section>
      )}
      <Further rendered={rendered} />
    </>
  );
}

function Messages({ rendered }: { rendered: Rendered }) {
  const t = useText(preview);
  const messages = useMemo(
    () => rendered.messages.map(({ role, content }) => ({ role, blocks: blocksOf(content) })),
    [rendered],
  );
  return messages.map(({ role, blocks }, number) => (
    <div key={number} className={styles["message"]}>
      <h3 className={styles["role"]}>{t("message", { number: number + 1, role })}</h3>
      {blocks.map(({ tag, text }, index) => (
        <details key={index} className={styles["block"]} open={blocks.length <= 2 || index === 0}>
          <summary>{tag === null ? <span className={styles["plain"]}>{t("plainText")}</span> : <code>{tag}</code>}</summary>
          <LongText text={text} label={tag ?? t("plainText")} maxHeight={360} />
        </details>
      ))}
    </div>
  ));
}

/** Results of the rendering that affect the reply and later turns. */
function Further({ rendered }: { rendered: Rendered }) {
  const t = useText(preview);
  const structure = rendered.expected_structure as { mandatory?: string[]; optional?: string[] } | null;
  const timed = Object.keys(rendered.timed).length > 0;
  if (structure === null && !timed) return null;
  return (
    <Section title={structure === null ? t("timed") : t("structure")}>
      <KeyValue
        items={[
          ...(structure === null
            ? []
            : [
                [
                  t("structure"),
                  <span key="tags">
                    {(structure.mandatory ?? []).map((tag) => (
                      <Tag key={tag}>{tag}</Tag>
                    ))}
                    {(structure.optional ?? []).map((tag) => (
                      <Tag key={tag}>{tag}</Tag>
                    ))}
                  </span>,
                ] as const,
              ]),
          ...(timed
            ? [[t("timed"), <LongText key="timed" text={yamlOf(rendered.timed)} label={t("timed")} maxHeight={200} />] as const]
            : []),
        ]}
      />
    </Section>
  );
}
