import { Button, Input, Tag } from "antd";
import { useMemo, useState } from "react";
import { EmptyState } from "../../../components/EmptyState.tsx";
import { LongText } from "../../../components/LongText.tsx";
import { VirtualList } from "../../../components/VirtualList.tsx";
import { imports } from "../../../i18n/texts/imports.ts";
import { templates } from "../../../i18n/texts/templates.ts";
import { useFormat, useText } from "../../../i18n/useText.ts";
import styles from "./Entries.module.css";
import { entryMatches, type LoreEntry } from "./lore.ts";

/** Entries of world info with their keys, places and texts. */
export function Entries({ entries }: { entries: readonly LoreEntry[] }) {
  const t = useText(imports);
  const other = useText(templates);
  const [search, setSearch] = useState("");
  const shown = useMemo(() => entries.filter((entry) => entryMatches(entry, search)), [entries, search]);
  if (entries.length === 0) return <EmptyState title={t("noEntries")} />;
  return (
    <>
      <Input.Search
        className={styles["search"] ?? ""}
        aria-label={t("searchEntries")}
        placeholder={t("searchEntries")}
        allowClear
        value={search}
        onChange={({ target }) => setSearch(target.value)}
      />
      {shown.length === 0 ? (
        <EmptyState
          title={t("noMatch")}
          action={<Button onClick={() => setSearch("")}>{other("clearSearch")}</Button>}
        />
      ) : (
        <VirtualList
          label={t("lore")}
          count={shown.length}
          rowHeight={140}
          height="min(65vh, 640px)"
          fit
          row={(index) => {
            const entry = shown[index];
            return entry === undefined ? null : <Entry entry={entry} />;
          }}
        />
      )}
    </>
  );
}

function Entry({ entry }: { entry: LoreEntry }) {
  const t = useText(imports);
  const format = useFormat();
  const place = usePlace(entry);
  const logic = useLogic(entry);
  const { title, keys, secondary_keys: secondary, constant, enabled, regex, content, selective } = entry;
  return (
    <article className={styles["entry"]}>
      <div className={styles["head"]}>
        <strong>{title === "" ? t("untitledEntry") : title}</strong>
        {constant && <Tag>{t("constant")}</Tag>}
        {!enabled && <Tag>{t("disabled")}</Tag>}
        {regex && <Tag>{t("regex")}</Tag>}
      </div>
      {keys.length > 0 && <Keys label={t("keys")} keys={keys} />}
      {selective && secondary.length > 0 && (
        <Keys label={t("secondary", { logic })} keys={secondary} />
      )}
      <div className={styles["meta"]}>
        <span>{t("position", { place })}</span>
        <span>{t("order", { order: entry.order })}</span>
        {entry.probability < 100 && <span>{t("probability", { percent: format.percent(entry.probability / 100) })}</span>}
        {entry.sticky > 0 && <span>{t("sticky", { count: entry.sticky })}</span>}
        {entry.cooldown > 0 && <span>{t("cooldown", { count: entry.cooldown })}</span>}
        {entry.delay > 0 && <span>{t("delay", { count: entry.delay })}</span>}
      </div>
      <LongText text={content} label={t("content")} maxHeight={180} bare />
    </article>
  );
}

function Keys({ label, keys }: { label: string; keys: readonly string[] }) {
  return (
    <div className={styles["keys"]}>
      <span className={styles["label"]}>{label}</span>
      {keys.map((key, index) => (
        <code key={index} className={styles["key"]}>
          {key}
        </code>
      ))}
    </div>
  );
}

function useLogic({ logic }: LoreEntry): string {
  const t = useText(imports);
  switch (logic) {
    case "and_any":
    case "and_all":
    case "not_any":
    case "not_all":
      return t(logic);
    default:
      return logic;
  }
}

function usePlace({ position, depth, role, outlet }: LoreEntry): string {
  const t = useText(imports);
  switch (position) {
    case "before_char":
    case "after_char":
    case "note_top":
    case "note_bottom":
    case "examples_before":
    case "examples_after":
      return t(position);
    case "personality":
      return t("personality_place");
    case "scenario":
      return t("scenario_place");
    case "at_depth":
      return t("at_depth", { depth, role });
    case "outlet":
      return t("outlet", { name: outlet });
    default:
      return position;
  }
}
