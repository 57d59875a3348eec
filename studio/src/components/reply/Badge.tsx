import { type ReactNode } from "react";
import styles from "./Badge.module.css";

export type Tone = "success" | "warning" | "danger" | "accent" | "muted";

/** Word for a state, in colours readable in both themes. */
export function Badge({ tone = "muted", children }: { tone?: Tone; children: ReactNode }) {
  return <span className={`${styles["badge"] ?? ""} ${styles[tone] ?? ""}`}>{children}</span>;
}

/** Tones of severities. */
export const TONES = { error: "danger", warning: "warning", info: "muted" } as const;
