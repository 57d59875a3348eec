import { useMemo } from "react";
import { LongText } from "../LongText.tsx";

/** JSON of a value, or a text as is. */
export function JsonText({ value, label, maxHeight = 240 }: { value: unknown; label: string; maxHeight?: number | string }) {
  const text = useMemo(
    () => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) as string | undefined) ?? "null"),
    [value],
  );
  return <LongText text={text} label={label} fileName="value.json" maxHeight={maxHeight} />;
}
