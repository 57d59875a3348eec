import { Alert, Button, Radio } from "antd";
import { useState } from "react";
import { YamlEditor } from "../../../components/CodeEditor.tsx";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { indentOf, linesOf } from "./lines.ts";
import { type Choice, type Hunk, hunksOf, merged } from "./merge.ts";
import styles from "./MergeView.module.css";

type MergeViewProps = {
  mine: string;
  theirs: string;
  /** Common base of both. */
  base: string;
  onMerged: (text: string) => void;
};

/** Two versions of a script side by side: one is chosen for each difference, and the result can be edited. */
export function MergeView({ mine, theirs, base, onMerged }: MergeViewProps) {
  const t = useText(scripts);
  const [hunks, setHunks] = useState<readonly Hunk[]>(() => hunksOf(mine, theirs, base));
  const [edited, setEdited] = useState<string | null>(null);
  const open = hunks.filter((hunk) => hunk.kind === "change" && hunk.choice === null).length;
  const result = edited ?? merged(hunks);

  const choose = (choice: Choice, only?: number) => {
    setEdited(null);
    setHunks(hunks.map((hunk, at) => (hunk.kind === "change" && (only ?? at) === at ? { ...hunk, choice } : hunk)));
  };

  return (
    <section className={styles["merge"]} aria-label={t("conflict")}>
      <Alert type="warning" showIcon role="alert" title={t("conflict")} description={t("conflictHint")} />
      <div className={styles["all"]}>
        <Button onClick={() => choose("mine")}>{t("allMine")}</Button>
        <Button onClick={() => choose("theirs")}>{t("allTheirs")}</Button>
      </div>
      {hunks.map((hunk, at) => {
        // Hunks keep their order, so the index is a stable key.
        if (hunk.kind === "same") {
          return (
            <p key={at} className={styles["same"]}>
              {t("sameLines", { count: linesOf(hunk.text).length })}
            </p>
          );
        }
        const number = hunks.slice(0, at + 1).filter(({ kind }) => kind === "change").length;
        return <Difference key={at} number={number} hunk={hunk} onChoose={(choice) => choose(choice, at)} />;
      })}
      <h2 className={styles["title"]}>{t("result")}</h2>
      {result === null ? (
        <p className={styles["same"]}>{t("choicesOpen", { count: open })}</p>
      ) : (
        <YamlEditor value={result} onChange={setEdited} label={t("result")} height={360} />
      )}
      <div className={styles["all"]}>
        <Button type="primary" disabled={result === null} onClick={() => result !== null && onMerged(result)}>
          {t("saveMerged")}
        </Button>
      </div>
    </section>
  );
}

type DifferenceProps = {
  number: number;
  hunk: Extract<Hunk, { kind: "change" }>;
  onChoose: (choice: Choice) => void;
};

function Difference({ number, hunk, onChoose }: DifferenceProps) {
  const t = useText(scripts);
  const label = t("changeNumber", { number });
  const indent = indentOf([hunk.mine, hunk.theirs]);
  return (
    <div className={styles["change"]}>
      <div className={styles["choice"]}>
        <strong>{label}</strong>
        <Radio.Group
          aria-label={label}
          value={hunk.choice}
          onChange={({ target }) => onChoose(target.value as Choice)}
          options={[
            { value: "mine", label: t("mine") },
            { value: "theirs", label: t("theirs") },
            { value: "both", label: t("both") },
          ]}
        />
      </div>
      <div className={styles["sides"]}>
        <Side name={t("mine")} text={hunk.mine} indent={indent} chosen={hunk.choice === "mine" || hunk.choice === "both"} />
        <Side name={t("theirs")} text={hunk.theirs} indent={indent} chosen={hunk.choice === "theirs" || hunk.choice === "both"} />
      </div>
    </div>
  );
}

type SideProps = { name: string; text: string; indent: number; chosen: boolean };

function Side({ name, text, indent, chosen }: SideProps) {
  const t = useText(scripts);
  return (
    <figure className={`${styles["side"] ?? ""} ${chosen ? (styles["chosen"] ?? "") : ""}`}>
      <figcaption>{name}</figcaption>
      {text.trim() === "" ? (
        <p className={styles["same"]}>{text === "" ? t("nothing") : t("blank", { count: linesOf(text).length })}</p>
      ) : (
        <pre>{linesOf(text).map((line) => (line.trim() === "" ? "\n" : line.slice(indent)))}</pre>
      )}
    </figure>
  );
}
