import { CaretDownOutlined, CaretRightOutlined, WarningOutlined } from "@ant-design/icons";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type DragEvent, type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { type OutlineNode, spotOf } from "../document/outline.ts";
import { parentKind, parentOf } from "../document/structure.ts";
import styles from "./ScriptTree.module.css";

export type TreeActions = {
  choose: (id: string) => void;
  shift: (node: OutlineNode, by: -1 | 1) => void;
  duplicate: (node: OutlineNode) => void;
  remove: (node: OutlineNode) => void;
  place: (node: OutlineNode, parent: OutlineNode | null, index: number) => void;
};

type ScriptTreeProps = {
  nodes: readonly OutlineNode[];
  chosen: string | null;
  /** Parts with findings of severity error. */
  faulty: ReadonlySet<string>;
  actions: TreeActions;
};

type Row = { readonly node: OutlineNode; readonly level: number };

/** Parts of a script as a tree; arrows choose, with Alt they move. */
export function ScriptTree({ nodes, chosen, faulty, actions }: ScriptTreeProps) {
  const t = useText(scripts);
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [dragged, setDragged] = useState<OutlineNode | null>(null);
  const [over, setOver] = useState<{ id: string; edge: Edge } | null>(null);
  const rows = rowsOf(nodes, closed);
  const at = rows.findIndex(({ node }) => node.id === chosen);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => 34,
    overscan: 12,
    getItemKey: (index) => rows[index]?.node.id ?? index,
  });

  useEffect(() => {
    if (at >= 0) virtual.scrollToIndex(at);
  }, [at, virtual]);

  const toggle = (node: OutlineNode, open: boolean) =>
    setClosed((before) => {
      const after = new Set(before);
      if (open) after.delete(node.id);
      else after.add(node.id);
      return after;
    });

  function onKeyDown(event: KeyboardEvent) {
    const node = rows[at]?.node;
    const go = (index: number) => {
      const next = rows[Math.min(rows.length - 1, Math.max(0, index))];
      if (next !== undefined) actions.choose(next.node.id);
    };
    const control = event.ctrlKey || event.metaKey;
    const act = (): boolean => {
      if (event.altKey && node !== undefined && event.key === "ArrowUp") actions.shift(node, -1);
      else if (event.altKey && node !== undefined && event.key === "ArrowDown") actions.shift(node, 1);
      else if (event.altKey) return false;
      else if (control && node !== undefined && event.key.toLowerCase() === "d") actions.duplicate(node);
      else if (control) return false;
      else if (event.key === "ArrowDown") go(at + 1);
      else if (event.key === "ArrowUp") go(at - 1);
      else if (event.key === "Home") go(0);
      else if (event.key === "End") go(rows.length - 1);
      else if (node === undefined) return false;
      else if (event.key === "ArrowRight") toggle(node, true);
      else if (event.key === "ArrowLeft") {
        const parent = parentOf(nodes, node);
        if (node.children.length > 0 && !closed.has(node.id)) toggle(node, false);
        else if (parent !== null) actions.choose(parent.id);
      } else if (event.key === "Delete") actions.remove(node);
      else return false;
      return true;
    };
    if (act()) event.preventDefault();
  }

  function onDrop(event: DragEvent, target: OutlineNode) {
    event.preventDefault();
    if (dragged !== null) {
      const place = placeOf(nodes, dragged, target, edgeOf(event, dragged, target));
      if (place !== null) actions.place(dragged, place.parent, place.index);
    }
    setDragged(null);
    setOver(null);
  }

  return (
    <div
      ref={box}
      className={styles["tree"]}
      role="tree"
      tabIndex={0}
      aria-label={t("structure")}
      aria-describedby={`${id}-keys`}
      aria-activedescendant={at < 0 ? undefined : `${id}-${at}`}
      onKeyDown={onKeyDown}
    >
      <span id={`${id}-keys`} className="visually-hidden">
        {t("treeKeys")}
      </span>
      <div role="presentation" style={{ position: "relative", height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index];
          if (row === undefined) return null;
          const { node, level } = row;
          const open = !closed.has(node.id);
          const hint = over?.id === node.id ? (styles[over.edge] ?? "") : "";
          return (
            // The tree handles the keys for all of its rows.
            // eslint-disable-next-line jsx-a11y/click-events-have-key-events
            <div
              key={item.key}
              id={`${id}-${item.index}`}
              role="treeitem"
              aria-level={level}
              aria-selected={node.id === chosen}
              aria-expanded={node.children.length > 0 ? open : undefined}
              tabIndex={-1}
              draggable
              className={`${styles["row"] ?? ""} ${hint}`}
              style={{ transform: `translateY(${item.start}px)`, paddingLeft: level * 16 - 8 }}
              onClick={() => {
                actions.choose(node.id);
                box.current?.focus({ preventScroll: true });
              }}
              onDragStart={(event) => {
                event.dataTransfer.effectAllowed = "move";
                event.dataTransfer.setData("text/plain", node.id);
                setDragged(node);
              }}
              onDragEnd={() => {
                setDragged(null);
                setOver(null);
              }}
              onDragOver={(event) => {
                if (dragged === null) return;
                const edge = edgeOf(event, dragged, node);
                if (placeOf(nodes, dragged, node, edge) === null) return;
                event.preventDefault();
                if (over?.id !== node.id || over.edge !== edge) setOver({ id: node.id, edge });
              }}
              onDrop={(event) => onDrop(event, node)}
            >
              <span
                className={styles["caret"]}
                aria-hidden="true"
                onClick={(event) => {
                  event.stopPropagation();
                  toggle(node, !open);
                }}
              >
                {node.children.length > 0 && (open ? <CaretDownOutlined /> : <CaretRightOutlined />)}
              </span>
              <span className={styles["kind"]}>{node.kind === "action" ? node.type : t(node.kind)}</span>
              <span className={styles["name"]}>{node.name === "" ? t("unnamed") : node.name}</span>
              {faulty.has(node.id) && (
                <span className={styles["fault"]} title={t("hasErrors")}>
                  <WarningOutlined aria-hidden="true" />
                  <span className="visually-hidden">{t("hasErrors")}</span>
                </span>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function rowsOf(nodes: readonly OutlineNode[], closed: ReadonlySet<string>, level = 1): Row[] {
  return nodes.flatMap((node) => [
    { node, level },
    ...(closed.has(node.id) ? [] : rowsOf(node.children, closed, level + 1)),
  ]);
}

type Edge = "above" | "below" | "into";

function edgeOf(event: DragEvent, dragged: OutlineNode, target: OutlineNode): Edge {
  if (dragged.kind !== target.kind) return "into";
  const { top, height } = event.currentTarget.getBoundingClientRect();
  return event.clientY < top + height / 2 ? "above" : "below";
}

/** New place of a part dropped on another; null if it cannot go there. */
function placeOf(nodes: readonly OutlineNode[], dragged: OutlineNode, target: OutlineNode, edge: Edge) {
  if (edge === "into") {
    return parentKind(dragged.kind) === target.kind ? { parent: target, index: target.children.filter(({ id }) => id !== dragged.id).length } : null;
  }
  const [from, to] = [spotOf(dragged), spotOf(target)];
  if (from === null || to === null || dragged.id === target.id) return null;
  const parent = parentOf(nodes, target);
  const own = parentOf(nodes, dragged)?.id === parent?.id;
  const index = to.index + (edge === "below" ? 1 : 0);
  return { parent, index: own && from.index < index ? index - 1 : index };
}
