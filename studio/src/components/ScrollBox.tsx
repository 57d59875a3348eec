import { type ReactNode } from "react";

/** Content with horizontal scrolling when it is too wide, by keyboard too. */
export function ScrollBox({ label, children }: { label: string; children: ReactNode }) {
  return (
    // Keys scroll the focused element.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
