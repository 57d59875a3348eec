import { Badge } from "./Badge.tsx";
import styles from "./Reply.module.css";

/** Heading of a block with its kind. */
export function BlockHead({ title, tag }: { title: string; tag?: string | undefined }) {
  return (
    <p className={styles["blockHead"]}>
      {title}
      {tag !== undefined && <Badge>{tag}</Badge>}
    </p>
  );
}
