import { Skeleton } from "antd";
import { lazy, Suspense } from "react";
import type { TemplateEditorProps } from "./editor/TemplateEditor.tsx";

const Editor = lazy(() =>
  import("./editor/TemplateEditor.tsx").then(({ TemplateEditor: component }) => ({ default: component })),
);

/** Template editor, loaded when first shown. */
export function TemplateText(props: TemplateEditorProps) {
  return (
    <Suspense fallback={<Skeleton active paragraph={{ rows: 10 }} title={false} />}>
      <Editor {...props} />
    </Suspense>
  );
}
