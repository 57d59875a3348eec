import { Form, type FormInstance } from "antd";
import { useEffect, useState } from "react";
import { same } from "../document/actions.ts";

/** Forms that are not valid, by part: they come back when the part is chosen again. */
export type PendingForms = Map<string, unknown>;

export type NodeFormProps<T> = {
  /** The part, and what kind of form it has. */
  name: string;
  /** What the script has. */
  values: T;
  write: (values: T) => void;
  pending: PendingForms;
};

type NodeForm<T> = {
  form: FormInstance<T>;
  initialValues: T;
  onValuesChange: () => void;
  /** Why the form is not saved. */
  invalid: string | null;
};

/** A form over a part of a script: valid changes are written at once, others wait until they are. */
export function useNodeForm<T extends object>({ name, values, write, pending }: NodeFormProps<T>): NodeForm<T> {
  const [form] = Form.useForm<T>();
  const [initialValues] = useState(() => (pending.get(name) as T | undefined) ?? values);
  const [invalid, setInvalid] = useState<string | null>(null);
  const key = JSON.stringify(values);

  const check = (all: T, onValid: () => void) => {
    pending.set(name, all);
    // The field validates itself first; of two validations of a form the later one counts.
    void Promise.resolve().then(() => form.validateFields()).then(
      () => {
        pending.delete(name);
        setInvalid(null);
        onValid();
      },
      (error: unknown) => {
        const { errorFields = [] } = error as { errorFields?: { errors: string[] }[] };
        const reasons = errorFields.flatMap(({ errors }) => errors);
        if (reasons.length > 0) setInvalid(reasons.join(" "));
      },
    );
  };

  useEffect(() => {
    const waiting = pending.get(name) as T | undefined;
    if (waiting !== undefined) {
      form.validateFields().catch((error: unknown) => {
        const { errorFields = [] } = error as { errorFields?: { errors: string[] }[] };
        setInvalid(errorFields.flatMap(({ errors }) => errors).join(" ") || null);
      });
    } else if (!same(form.getFieldsValue(true), JSON.parse(key))) {
      // The text, or undo, has changed the part.
      form.setFieldsValue(JSON.parse(key) as Parameters<typeof form.setFieldsValue>[0]);
    }
  }, [form, key, name, pending]);

  const onValuesChange = () => {
    const all = form.getFieldsValue(true) as T;
    check(all, () => write(all));
  };
  return { form, initialValues, onValuesChange, invalid };
}
