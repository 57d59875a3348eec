import { type ReactNode, useId } from "react";
import styles from "./Section.module.css";

type SectionProps = {
  title: string;
  hint?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
};

/** Titled part of a page on its own surface. */
export function Section({ title, hint, actions, children }: SectionProps) {
  const id = useId();
  return (
    <section className={styles["section"]} aria-labelledby={id}>
      <div className={styles["head"]}>
        <div>
          <h2 id={id} className={styles["title"]}>
            {title}
          </h2>
          {hint !== undefined && <p className={styles["hint"]}>{hint}</p>}
        </div>
        {actions}
      </div>
      {children}
    </section>
  );
}
