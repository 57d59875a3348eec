import { ArrowDownOutlined, ArrowUpOutlined, CopyOutlined, DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { type ReactNode } from "react";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { type Kind, type OutlineNode } from "../document/outline.ts";
import { addPart, duplicatePart, holderOf, newPart, removePart, type Restructured, shiftPart } from "../document/structure.ts";
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

/** Buttons for the chosen part, for use without a keyboard. Each keeps its place, whatever is chosen. */
export function PartButtons({ session, nodes, chosen, broken, add, restructure }: PartButtonsProps) {
  const t = useText(scripts);
  const names = { session: t("newSession"), phase: t("newPhase"), step: t("newStep"), action: "" };
  const labels = { session: t("addSession"), phase: t("addPhase"), step: t("addStep"), action: t("addAction") };
  const flat = nodes.some((node) => node.flat);

  function addOne(kind: Kind, parent: OutlineNode | null) {
    const count = parent === null ? nodes.length : parent.children.length;
    add(addPart(session.text, parent, count, newPart(kind, names[kind])));
  }

  const change = (icon: ReactNode, label: string, act: (node: OutlineNode) => void, danger = false) => (
    <Button
      size="small"
      danger={danger}
      icon={icon}
      aria-label={label}
      title={label}
      disabled={chosen === null}
      onClick={() => chosen !== null && act(chosen)}
    />
  );
  return (
    <>
      <div className={styles["adding"]}>
        {(["session", "phase", "step", "action"] as const).map((kind) => {
          const parent = kind === "session" ? null : holderOf(nodes, chosen, kind);
          return (
            <Button
              key={kind}
              size="small"
              icon={<PlusOutlined aria-hidden="true" />}
              disabled={broken || flat || (kind !== "session" && parent === null)}
              onClick={() => addOne(kind, parent)}
            >
              {labels[kind]}
            </Button>
          );
        })}
      </div>
      <div className={styles["bar"]}>
        {change(<ArrowUpOutlined aria-hidden="true" />, t("moveUp"), (node) => restructure(shiftPart(session.text, nodes, node, -1)))}
        {change(<ArrowDownOutlined aria-hidden="true" />, t("moveDown"), (node) => restructure(shiftPart(session.text, nodes, node, 1)))}
        {change(<CopyOutlined aria-hidden="true" />, t("duplicate"), (node) => restructure(duplicatePart(session.text, node)))}
        {change(<DeleteOutlined aria-hidden="true" />, t("remove"), (node) => restructure(removePart(session.text, node)), true)}
      </div>
    </>
  );
}
