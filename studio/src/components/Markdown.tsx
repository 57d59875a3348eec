import { Skeleton } from "antd";
import { lazy, Suspense } from "react";

const Formatted = lazy(() => import("./markdown/Markdown.tsx").then(({ Markdown: component }) => ({ default: component })));

/** Markdown of a reply; the formatter is loaded on first use. */
export function Markdown(props: { text: string; label?: string }) {
  return (
    <Suspense fallback={<Skeleton active paragraph={{ rows: 2 }} title={false} />}>
      <Formatted {...props} />
    </Suspense>
  );
}
