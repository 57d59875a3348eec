import { Editor, type EditorProps } from "../../../../components/editor/Editor.tsx";
import { variableMarks } from "./variableMarks.ts";

export type TemplateEditorProps = Omit<EditorProps, "language" | "extensions">;

/** A text editor in which the variables of a template are marked. */
export function TemplateEditor(props: TemplateEditorProps) {
  return <Editor {...props} language="text" extensions={variableMarks} />;
}
