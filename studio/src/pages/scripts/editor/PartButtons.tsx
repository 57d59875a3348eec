import { ArrowDownOutlined, ArrowUpOutlined, CopyOutlined, DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { CHILD_KIND, type Kind, type OutlineNode } from "../document/outline.ts";
import { addPart, duplicatePart, newPart, parentOf, removePart, type Restructured, shiftPart } from "../document/structure.ts";
import { type ScriptSession } from "../store/ScriptSession.ts";
import styles from "./Editor.module.css";

type PartButtonsProps = {
  session: ScriptSession;
  nodes: readonly OutlineNode[];
  chosen: OutlineNode | null;
  broken: boolean;
  add: (done: Restructured) => void;
  restructure: (done: Restructured) => void;
};

/** What can be done with the chosen part, for those who use no keys. */
export function PartButtons({ session, nodes, chosen, broken, add, restructure }: PartButtonsProps) {
  const t = useText(scripts);
  const names = { session: t("newSession"), phase: t("newPhase"), step: t("newStep"), action: "" };
  const labels = { session: t("addSession"), phase: t("addPhase"), step: t("addStep"), action: t("addAction") };
  const below = chosen === null ? null : CHILD_KIND[chosen.kind];
  const flat = nodes.some((node) => node.flat);

  function addOne(kind: Kind, parent: OutlineNode | null) {
    const count = parent === null ? nodes.length : parent.children.length;
    add(addPart(session.text, parent, count, newPart(kind, names[kind])));
  }

  const adding = (kind: Kind, parent: OutlineNode | null) => (
    <Button size="small" icon={<PlusOutlined aria-hidden="true" />} disabled={broken || flat} onClick={() => addOne(kind, parent)}>
      {labels[kind]}
    </Button>
  );
  return (
    <div className={styles["bar"]}>
      {(chosen === null || chosen.kind === "session") && adding("session", null)}
      {below !== null && adding(below, chosen)}
      {chosen !== null && chosen.kind !== "session" && adding(chosen.kind, parentOf(nodes, chosen))}
      {chosen !== null && (
        <>
          <Button
            size="small"
            icon={<ArrowUpOutlined aria-hidden="true" />}
            aria-label={t("moveUp")}
            onClick={() => restructure(shiftPart(session.text, nodes, chosen, -1))}
          />
          <Button
            size="small"
            icon={<ArrowDownOutlined aria-hidden="true" />}
            aria-label={t("moveDown")}
            onClick={() => restructure(shiftPart(session.text, nodes, chosen, 1))}
          />
          <Button
            size="small"
            icon={<CopyOutlined aria-hidden="true" />}
            aria-label={t("duplicate")}
            onClick={() => restructure(duplicatePart(session.text, chosen))}
          />
          <Button
            size="small"
            danger
            icon={<DeleteOutlined aria-hidden="true" />}
            aria-label={t("remove")}
            onClick={() => restructure(removePart(session.text, chosen))}
          />
        </>
      )}
    </div>
  );
}
