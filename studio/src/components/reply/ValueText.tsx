import { useMemo } from "react";
import { LongText } from "../LongText.tsx";

/** Most characters of a value shown inline. */
const SHORT = 20_000;

/** Value among others: text as is, anything else as JSON, and a long one in its own box. */
export function ValueText({ value, label }: { value: unknown; label: string }) {
  const text = useMemo(
    () => (typeof value === "string" ? value : ((JSON.stringify(value) as string | undefined) ?? "")),
    [value],
  );
  return text.length > SHORT ? <LongText text={text} label={label} fileName="value.txt" maxHeight={240} /> : text;
}
