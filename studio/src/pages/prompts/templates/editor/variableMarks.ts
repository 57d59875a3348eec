import { RangeSetBuilder, StateField, type Text } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView } from "@codemirror/view";
import { piecesOf, SYSTEM_NAMES } from "../templateText.ts";

const SCRIPT = Decoration.mark({ class: "tb-script" });
const SYSTEM = Decoration.mark({ class: "tb-system" });
const UNKNOWN = Decoration.mark({ class: "tb-unknown" });

function marksOf(text: Text): DecorationSet {
  const marks = new RangeSetBuilder<Decoration>();
  for (const piece of piecesOf(text.toString())) {
    if (piece.kind !== "variable") continue;
    const known = piece.layer === "script" || SYSTEM_NAMES.includes(piece.name);
    marks.add(piece.from, piece.to, piece.layer === "script" ? SCRIPT : known ? SYSTEM : UNKNOWN);
  }
  return marks.finish();
}

const field = StateField.define<DecorationSet>({
  create: (state) => marksOf(state.doc),
  update: (marks, change) => (change.docChanged ? marksOf(change.newDoc) : marks),
  provide: (marks) => EditorView.decorations.from(marks),
});

const theme = EditorView.baseTheme({
  ".tb-script, .tb-system, .tb-unknown": { borderRadius: "4px", padding: "1px 0", fontWeight: "600" },
  ".tb-script": { color: "var(--plot-1)", backgroundColor: "color-mix(in srgb, var(--plot-1) 5%, transparent)" },
  ".tb-system": { color: "var(--plot-3)", backgroundColor: "color-mix(in srgb, var(--plot-3) 7%, transparent)" },
  ".tb-unknown": { color: "var(--danger)", textDecoration: "underline wavy" },
});

/** Marks the variables of a template: those of the script, those of the system, and unknown ones. */
export const variableMarks = [field, theme];
