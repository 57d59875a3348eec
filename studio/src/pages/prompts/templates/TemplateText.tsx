import { Skeleton } from "antd";
import { lazy, Suspense } from "react";
import type { TemplateEditorProps } from "./editor/TemplateEditor.tsx";

const Editor = lazy(() =>
  import("./editor/TemplateEditor.tsx").then(({ TemplateEditor: component }) => ({ default: component })),
);

/** The editor of a template, which is loaded when it is first shown. */
export function TemplateText(props: TemplateEditorProps) {
  return (
    <Suspense fallback={<Skeleton active paragraph={{ rows: 10 }} title={false} />}>
      <Editor {...props} />
    </Suspense>
  );
}
