import { Alert, Drawer, Tag } from "antd";
import { type ReactNode } from "react";
import { api } from "../../api/client.ts";
import { useResource } from "../../api/useResource.ts";
import { KeyValue } from "../../components/KeyValue.tsx";
import { LongText } from "../../components/LongText.tsx";
import { run } from "../../i18n/texts/run.ts";
import { useFormat, useText } from "../../i18n/useText.ts";
import { type Decision, type Round } from "./model.ts";
import styles from "./RoundDrawer.module.css";
import { type Piece, substituted } from "./substitution.ts";
import { useDecisionWords } from "./useDecisionWords.ts";
import { shownValue } from "./variables.ts";

type StatusName = "completed" | "failed" | "running" | "interrupted";

/** Most characters of a text that is marked; a longer one is shown in parts. */
const LONG = 200_000;

/** Prompt of a round, the model's reply, and the result. */
export function RoundDrawer({ round, onClose }: { round: Round | null; onClose: () => void }) {
  const t = useText(run);
  return (
    <Drawer
      open={round !== null}
      onClose={onClose}
      size={720}
      title={round === null ? "" : t("debug", { round: round.round ?? 1 })}
      destroyOnHidden
    >
      {round !== null && <Details round={round} />}
    </Drawer>
  );
}

function Details({ round }: { round: Round }) {
  const t = useText(run);
  const { number } = useFormat();
  const ms = round.timings?.total_ms;
  return (
    <div className={styles["details"]}>
      {round.error != null && <Alert type="error" showIcon title={round.error.code} description={round.error.message} />}
      {round.asked_again === true && <Alert type="warning" showIcon title={t("askedAgain")} description={round.unreadable ?? undefined} />}
      <KeyValue
        items={[
          [t("status"), round.status in run ? t(round.status as StatusName) : round.status],
          [t("model"), [round.upstream, round.model].filter((part) => part != null).join(" · ")],
          [t("time"), ms === undefined ? t("none") : `${number(ms / 1000, 2)} s`],
          [t("place"), <code key="path">{round.path}</code>],
        ]}
      />
      {round.exit_decision != null && (
        <Part title={t("decision")}>
          <Decided decision={round.exit_decision} reasoning={round.assessment?.reasoning ?? null} />
        </Part>
      )}
      {round.assigned != null && Object.keys(round.assigned).length > 0 && (
        <Part title={t("assigned")}>
          <KeyValue items={Object.entries(round.assigned).map(([name, value]) => [name, shownValue(value)] as const)} />
        </Part>
      )}
      <Part title={t("findings")}>
        <Findings round={round} />
      </Part>
      <Part title={t("raw")}>
        <LongText text={round.raw ?? ""} label={t("raw")} fileName="reply.txt" maxHeight="40vh" />
      </Part>
      <Part title={t("prompt")}>
        <Prompt round={round} />
      </Part>
    </div>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className={styles["title"]}>{title}</h3>
      {children}
    </section>
  );
}

function Decided({ decision, reasoning }: { decision: Decision; reasoning: string | null }) {
  const t = useText(run);
  const words = useDecisionWords();
  return (
    <KeyValue
      items={[
        [t("decision"), words.outcome(decision.should_exit)],
        [t("source"), words.source(decision.decision_source)],
        [t("reason"), decision.reason],
        [t("unmet"), decision.unmet.length === 0 ? t("none") : decision.unmet.map((name) => <Tag key={name}>{words.unmet(name)}</Tag>)],
        [t("understanding"), shownValue(decision.assessment?.understanding_level ?? null)],
        [t("reasoning"), reasoning ?? t("none")],
      ]}
    />
  );
}

function Findings({ round }: { round: Round }) {
  const t = useText(run);
  const findings = round.findings ?? [];
  if (findings.length === 0) return <p className={styles["muted"]}>{t("noFindings")}</p>;
  return (
    <ul className={styles["findings"]}>
      {findings.map((finding, index) => (
        <li key={index}>
          <code>{finding.code}</code> {finding.message}
          {finding.repair != null && <div className={styles["muted"]}>{t("repair", { repair: finding.repair })}</div>}
        </li>
      ))}
    </ul>
  );
}

function Prompt({ round }: { round: Round }) {
  const t = useText(run);
  const { template_id: name, template_hash: hash, prompt = [] } = round;
  const template = useResource(name === undefined ? null : `template ${name}`, async (signal) => {
    const { data } = await api.get("/api/v1/templates/{name}", { path: { name: name ?? "" }, signal });
    return data as unknown as { text: string; hash: string };
  });
  const same = template.data?.hash === hash ? template.data : null;
  const text = prompt.map(({ content }) => content).join("\n\n");
  const pieces = same == null || text.length > LONG ? null : substituted(same.text, text);
  if (template.loading) return null;
  if (pieces === null) {
    const why = template.error !== null ? "promptNoTemplate" : text.length > LONG ? "promptLong" : "promptPlain";
    return (
      <>
        {name !== undefined && <p className={styles["muted"]}>{t(why)}</p>}
        <LongText text={text} label={t("prompt")} fileName="prompt.txt" />
      </>
    );
  }
  return (
    <>
      <p className={styles["muted"]}>{t("promptMarked")}</p>
      <Marked pieces={pieces} label={t("prompt")} />
    </>
  );
}

function Marked({ pieces, label }: { pieces: readonly Piece[]; label: string }) {
  return (
    // Keys scroll the focused element.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className={styles["prompt"]} tabIndex={0} role="region" aria-label={label}>
      {pieces.map(({ text, name }, index) =>
        name === null ? (
          text
        ) : (
          <mark key={index} title={name} className={styles["mark"]}>
            {text}
          </mark>
        ),
      )}
    </pre>
  );
}
