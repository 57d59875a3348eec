import { Skeleton } from "antd";
import { type ReactNode } from "react";
import { type ApiError } from "../api/errors.ts";
import { common } from "../i18n/texts/common.ts";
import { useText } from "../i18n/useText.ts";
import { ErrorState } from "./ErrorState.tsx";
import styles from "./Page.module.css";

type PageProps = {
  title: string;
  /** Sentence about the purpose of the page. */
  purpose?: ReactNode;
  actions?: ReactNode;
  /** Content of the page; `useResource` returns the next three. */
  children?: ReactNode;
  /** True before the first data, to show a placeholder. */
  loading?: boolean;
  error?: ApiError | null;
  onRetry?: () => void;
  /** True if the page takes the full width. */
  wide?: boolean;
};

/** Page with title, actions, and content or a placeholder for it. */
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

/** Content, or its placeholder while it loads or after a failure. */
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
