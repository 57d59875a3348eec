import { Skeleton } from "antd";
import { type ReactNode } from "react";
import { type ApiError } from "../api/errors.ts";
import { common } from "../i18n/texts/common.ts";
import { useText } from "../i18n/useText.ts";
import { ErrorState } from "./ErrorState.tsx";
import styles from "./Page.module.css";

type PageProps = {
  title: string;
  /** A sentence on what the page is for. */
  purpose?: ReactNode;
  actions?: ReactNode;
  /** What the page shows; `useResource` gives the next three. */
  children?: ReactNode;
  /** Shown while there is nothing to show yet. */
  loading?: boolean;
  error?: ApiError | null;
  onRetry?: () => void;
  /** Whether the page takes the whole width. */
  wide?: boolean;
};

/** A page: its title, its actions, and its content or what stands in its place. */
export function Page({ title, purpose, actions, children, loading, error, onRetry, wide }: PageProps) {
  return (
    <div className={`${styles["page"] ?? ""} ${wide === true ? (styles["wide"] ?? "") : ""}`}>
      <title>{`${title} · Tambour`}</title>
      <div className={styles["head"]}>
        <div>
          <h1 className={styles["title"]}>{title}</h1>
          {purpose !== undefined && <p className={styles["purpose"]}>{purpose}</p>}
        </div>
        {actions !== undefined && <div className={styles["actions"]}>{actions}</div>}
      </div>
      <Content loading={loading} error={error} onRetry={onRetry}>
        {children}
      </Content>
    </div>
  );
}

type ContentProps = {
  loading: boolean | undefined;
  error: ApiError | null | undefined;
  onRetry: (() => void) | undefined;
  children: ReactNode;
};

/** Content, or what stands in its place while it loads or after it failed. */
export function Content({ loading, error, onRetry, children }: ContentProps) {
  const t = useText(common);
  if (error !== null && error !== undefined) {
    return <ErrorState error={error} {...(onRetry === undefined ? {} : { onRetry })} />;
  }
  if (loading === true) {
    return (
      <div className={styles["waiting"]} role="status" aria-label={t("loading")}>
        <Skeleton active paragraph={{ rows: 6 }} />
      </div>
    );
  }
  return children;
}
