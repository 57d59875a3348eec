import { Skeleton } from "antd";
import { lazy, Suspense } from "react";
import type { MergeProps } from "./Merge.tsx";
import styles from "./SideBySide.module.css";

const Merge = lazy(() => import("./Merge.tsx").then(({ Merge: component }) => ({ default: component })));

/** Two named texts side by side. */
export function SideBySide(props: MergeProps) {
  return (
    <div className={styles["sides"]}>
      <div className={styles["heads"]}>
        <span>{props.beforeLabel}</span>
        <span>{props.afterLabel}</span>
      </div>
      <Suspense fallback={<Skeleton className={styles["waiting"] ?? ""} active paragraph={{ rows: 6 }} title={false} />}>
        <Merge {...props} />
      </Suspense>
    </div>
  );
}
