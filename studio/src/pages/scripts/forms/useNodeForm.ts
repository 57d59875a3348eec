import { Form, type FormInstance } from "antd";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { same } from "../document/actions.ts";
import { type ScriptSession } from "../store/ScriptSession.ts";
import { type WaitingForm, withTyped } from "../store/waiting.ts";

/** Keeper of invalid forms: they return when the part is chosen again. */
export type HeldForms = Pick<ScriptSession, "waitingFor" | "hold" | "letGo">;

export type NodeFormProps<T> = {
  part: Pick<WaitingForm, "title" | "form"> & { readonly part: string };
  /** Values in the script. */
  values: T;
  write: (values: T) => void;
  held: HeldForms;
};

type NodeForm<T> = {
  form: FormInstance<T>;
  initialValues: T;
  onValuesChange: () => void;
  /** Reason why the form is not saved. */
  invalid: string | null;
};

/** Form over a part of a script: valid changes are written at once, others wait until they are valid. */
export function useNodeForm<T extends object>({ part, values, write, held }: NodeFormProps<T>): NodeForm<T> {
  const [form] = Form.useForm<T>();
  const waiting = held.waitingFor(part.part, part.form);
  const [initialValues] = useState(() => (waiting === null ? values : withTyped(values, waiting)));
  const [faults, setFaults] = useState<string | null>(null);
  const checks = useRef(0);
  const key = JSON.stringify(values);

  function check(base: T): void {
    const typed = { ...(form.getFieldsValue(true) as T) };
    checks.current += 1;
    void reasonOf(form).then((reason) => {
      checks.current -= 1;
      // A later check has begun, with newer values.
      if (checks.current > 0) return;
      setFaults(reason);
      if (reason !== null) {
        held.hold({ ...part, values: typed as WaitingForm["values"], base: { ...base } as WaitingForm["base"] });
        return;
      }
      write(typed);
      const done = held.waitingFor(part.part, part.form);
      if (done !== null) held.letGo(done);
    });
  }

  const settle = useEffectEvent(() => {
    const present = form.getFieldsValue(true) as T;
    const wanted = waiting === null ? values : withTyped(values, waiting);
    // During a check, the last typed values are not in the script yet.
    if (checks.current > 0) return;
    if (!same(present, wanted)) form.setFieldsValue(wanted);
    if (waiting !== null) check(values);
  });

  const isWaiting = waiting !== null;
  // The text or undo has changed the part, or the typed values were given up.
  useEffect(() => settle(), [key, part.part, isWaiting]);

  const onValuesChange = () => check((waiting?.base as T | undefined) ?? values);
  return { form, initialValues, onValuesChange, invalid: waiting === null ? null : faults };
}

/** Reason why a form is not valid; null if it is. */
async function reasonOf(form: FormInstance): Promise<string | null> {
  // The field validates itself first; of two validations of a form the later one counts.
  await Promise.resolve();
  try {
    await form.validateFields();
    return null;
  } catch (error) {
    const { errorFields = [], outOfDate } = error as { errorFields?: { errors: string[] }[]; outOfDate?: boolean };
    const reasons = errorFields.flatMap(({ errors }) => errors);
    if (reasons.length > 0) return reasons.join(" ");
    if (outOfDate === true) return reasonOf(form);
    throw error;
  }
}
