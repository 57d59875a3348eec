import { Editor, type EditorProps } from "../../../../components/editor/Editor.tsx";
import { variableMarks } from "./variableMarks.ts";

export type TemplateEditorProps = Omit<EditorProps, "language" | "extensions">;

/** Text editor that marks the variables of a template. */
export function TemplateEditor(props: TemplateEditorProps) {
  return <Editor {...props} language="text" extensions={variableMarks} />;
}
