import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef } from "react";
import styles from "./VirtualList.module.css";

type VirtualListProps = {
  /** Label for screen readers. */
  label: string;
  count: number;
  row: (index: number) => ReactNode;
  keyOf?: (index: number) => string | number;
  /** Estimated height of a row; rows are measured. */
  rowHeight?: number;
  height: number | string;
  /** Shrinks the list if its rows need less than the height. */
  fit?: boolean;
  /** Makes rows selectable by pointer, arrows, Home, End and page keys. */
  onSelect?: (index: number) => void;
  selected?: number | null;
  /** Called when the last rows come into view, to load more. */
  onEnd?: () => void;
  /** Keeps the end in view while rows are added, as long as the user is at the end. */
  follow?: boolean;
};

/** List of any length: only visible rows are in the page. */
export function VirtualList(props: VirtualListProps) {
  const { label, count, row, keyOf, rowHeight = 40, height, fit = false, onSelect, selected = null, onEnd, follow = false } = props;
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const before = useRef({ top: 0, height: 0 });
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 8,
    getItemKey: keyOf ?? ((index: number) => index),
  });
  const items = virtual.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  const choosable = onSelect !== undefined;

  useEffect(() => {
    if (count > 0 && last >= count - 1) onEnd?.();
    // A new handler identity on each render is no reason to call it again.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [last, count]);

  const size = virtual.getTotalSize();
  useEffect(() => {
    // Rows grow while they are written and measured: the end moves without a row being added.
    if (follow && atEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [follow, count, size]);

  useEffect(() => {
    if (selected !== null && selected >= 0 && selected < count) virtual.scrollToIndex(selected);
  }, [selected, count, virtual]);

  function onKeyDown(event: KeyboardEvent) {
    if (onSelect === undefined || count === 0 || event.target !== event.currentTarget) return;
    const page = Math.max(1, items.length - 16);
    const from = selected ?? -1;
    const targets: Record<string, number> = {
      ArrowDown: from + 1,
      ArrowUp: from - 1,
      PageDown: from + page,
      PageUp: from - page,
      Home: 0,
      End: count - 1,
    };
    const target = targets[event.key];
    if (target === undefined) return;
    event.preventDefault();
    onSelect(Math.min(count - 1, Math.max(0, target)));
  }

  const rowId = (index: number) => `${id}-${index}`;
  return (
    // The role announces the keys for selection.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions
    <div
      ref={box}
      className={styles["box"]}
      style={fit ? { maxHeight: height } : { height }}
      role={choosable ? "listbox" : "list"}
      aria-label={label}
      aria-activedescendant={choosable && selected !== null ? rowId(selected) : undefined}
      // A scrollable box takes the focus, so that keys scroll it.
      // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
      tabIndex={0}
      onKeyDown={choosable ? onKeyDown : undefined}
      onScroll={({ currentTarget: at }) => {
        const { scrollTop: top, scrollHeight: height } = at;
        if (height - top - at.clientHeight < rowHeight) atEnd.current = true;
        // Scrolling up leaves the end; growing rows do not.
        else if (top < before.current.top && height === before.current.height) atEnd.current = false;
        before.current = { top, height };
      }}
    >
      <div className={styles["space"]} style={{ height: size }} role="presentation">
        {items.map((item) => (
          <div
            key={item.key}
            id={rowId(item.index)}
            ref={virtual.measureElement}
            data-index={item.index}
            className={styles["row"]}
            style={{ transform: `translateY(${item.start}px)` }}
            {...(choosable
              ? { role: "option", "aria-selected": item.index === selected, onClick: () => onSelect(item.index) }
              : { role: "listitem" })}
            aria-setsize={count}
            aria-posinset={item.index + 1}
          >
            {row(item.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
