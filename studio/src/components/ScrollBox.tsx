import { type ReactNode } from "react";

/** Content that scrolls sideways where it is wider than its place, by keyboard too. */
export function ScrollBox({ label, children }: { label: string; children: ReactNode }) {
  return (
    // Keys scroll what has the focus.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div style={{ overflowX: "auto" }} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
