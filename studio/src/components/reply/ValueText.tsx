import { useMemo } from "react";
import { LongText } from "../LongText.tsx";

/** Characters of a value that stands among others as it is. */
const SHORT = 20_000;

/** A value among others: a text as it is, anything else as JSON, and a long one in a box of its own. */
export function ValueText({ value, label }: { value: unknown; label: string }) {
  const text = useMemo(
    () => (typeof value === "string" ? value : ((JSON.stringify(value) as string | undefined) ?? "")),
    [value],
  );
  return text.length > SHORT ? <LongText text={text} label={label} fileName="value.txt" maxHeight={240} /> : text;
}
