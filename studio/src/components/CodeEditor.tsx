import { Skeleton } from "antd";
import { lazy, Suspense } from "react";
import type { EditorProps } from "./editor/Editor.tsx";

export type { Diagnostic } from "./editor/diagnostics.ts";
export type { EditorHandle } from "./editor/Editor.tsx";

const Editor = lazy(() => import("./editor/Editor.tsx").then(({ Editor: component }) => ({ default: component })));

/** Text editor, loaded when first shown. */
export function CodeEditor(props: EditorProps) {
  return (
    <Suspense fallback={<Skeleton active paragraph={{ rows: 6 }} title={false} />}>
      <Editor {...props} />
    </Suspense>
  );
}

/** YAML editor. */
export function YamlEditor(props: Omit<EditorProps, "language">) {
  return <CodeEditor {...props} language="yaml" />;
}
