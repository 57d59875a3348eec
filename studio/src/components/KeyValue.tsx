import { Fragment, type ReactNode } from "react";
import styles from "./KeyValue.module.css";

/** Names with values, in two columns, or stacked on narrow screens. */
export function KeyValue({ items }: { items: readonly (readonly [name: string, value: ReactNode])[] }) {
  return (
    <dl className={styles["list"]}>
      {items.map(([name, value]) => (
        <Fragment key={name}>
          <dt className={styles["name"]}>{name}</dt>
          <dd className={styles["value"]}>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
