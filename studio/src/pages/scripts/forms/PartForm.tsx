import { DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { Button, Form, Input, type InputRef, Select } from "antd";
import { useEffect, useRef, useState } from "react";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { sayValues, textAt, writeOptional, writeSay } from "../document/actions.ts";
import { setField } from "../document/fields.ts";
import { insertItem, removeItem } from "../document/items.ts";
import { type OutlineNode } from "../document/outline.ts";
import { type Parsed } from "../document/parse.ts";
import { declaredAt } from "../document/variables.ts";
import styles from "./Forms.module.css";
import { Field, FormFrame, useFindingsOf } from "./FormFrame.tsx";
import { AskForm, ClientForm, ThinkForm } from "./OtherForms.tsx";
import { askValues, clientValues, formFields, thinkValues, writeAsk, writeClient, writeThink } from "./otherValues.ts";
import { SayForm } from "./SayForm.tsx";
import { type HeldForms, useNodeForm } from "./useNodeForm.ts";

export type PartFormProps = {
  parsed: Parsed;
  node: OutlineNode;
  known: readonly string[];
  held: HeldForms;
  /** True if the part was just added: its name is edited next. */
  isNew?: boolean;
  /** Applies a change of the text; `group` joins changes that are typed in one go. */
  edit: (change: (text: string) => string, group: string) => void;
};

/** Form of the chosen part. */
export function PartForm(props: PartFormProps) {
  const t = useText(scripts);
  const { node } = props;
  if (node.flat) return <p className={styles["note"]}>{t("flatLayout")}</p>;
  return node.kind === "action" ? <ActionForm {...props} /> : <NamedForm key={node.id} {...props} />;
}

const NAME_FIELD = { session: "session", phase: "phase", step: "topic", action: "type" } as const;

function NamedForm({ parsed, node, held, isNew = false, edit }: PartFormProps) {
  const t = useText(scripts);
  const nameField = useRef<InputRef>(null);
  // Focuses once, and not when undo restores the part.
  const [begins] = useState(isNew);
  useEffect(() => {
    if (begins) nameField.current?.focus({ cursor: "all" });
  }, [begins]);
  const values = { name: node.name };
  const { invalid, ...form } = useNodeForm({
    part: { part: node.id, title: node.name, form: "name" },
    values,
    held,
    write: ({ name }) => edit((text) => setField(text, node.path, NAME_FIELD[node.kind], name), `${node.id} name`),
  });
  return (
    <>
      <FormFrame {...form} invalid={invalid}>
        <Field
          name="name"
          keys={[NAME_FIELD[node.kind]]}
          label={t("name")}
          rules={[{ required: true, whitespace: true, message: t("nameNeeded") }]}
        >
          <Input ref={nameField} />
        </Field>
      </FormFrame>
      <Declared parsed={parsed} node={node} edit={edit} />
    </>
  );
}

function Declared({ parsed, node, edit }: Pick<PartFormProps, "parsed" | "node" | "edit">) {
  const t = useText(scripts);
  const declared = declaredAt(parsed, node.path);
  const set = (index: number, key: string, value: string) =>
    edit((text) => setField(text, [...node.path, "declare", index], key, value), `${node.id} declare ${index} ${key}`);
  return (
    <section>
      <h3>{t("declared")}</h3>
      <div className={styles["declared"]}>
        {declared.length > 0 && (
          <div className={`${styles["declaredRow"] ?? ""} ${styles["note"] ?? ""}`} aria-hidden="true">
            <span>{t("variableName")}</span>
            <span>{t("variableValue")}</span>
          </div>
        )}
        {declared.map(({ name, value }, index) => (
          <div key={index} className={styles["declaredRow"]}>
            <Input
              aria-label={t("declaredName", { number: index + 1 })}
              value={name}
              onChange={({ target }) => set(index, "var", target.value)}
            />
            <Input
              aria-label={t("declaredValue", { number: index + 1 })}
              value={typeof value === "string" ? value : value === null ? "" : JSON.stringify(value)}
              disabled={typeof value === "object" && value !== null}
              onChange={({ target }) => set(index, "value", target.value)}
            />
            <Button
              type="text"
              icon={<DeleteOutlined aria-hidden="true" />}
              aria-label={t("removeVariable", { name })}
              onClick={() => edit((text) => removeItem(text, node.path, "declare", index), "")}
            />
          </div>
        ))}
      </div>
      <Button
        icon={<PlusOutlined aria-hidden="true" />}
        onClick={() => edit((text) => insertItem(text, node.path, "declare", declared.length, { var: freeName(declared), value: "" }), "")}
      >
        {t("addVariable")}
      </Button>
    </section>
  );
}

function freeName(declared: readonly { name: string }[]): string {
  for (let number = declared.length + 1; ; number += 1) {
    const name = `var${number}`;
    if (!declared.some((one) => one.name === name)) return name;
  }
}

/** Types of actions, with their keys in the catalogue. */
const TYPES = {
  ai_say: "typeSay",
  ai_ask: "typeAsk",
  ai_think: "typeThink",
  use_skill: "typeSkill",
  show_form: "typeForm",
  show_pic: "typePicture",
} as const;

function ActionForm(props: PartFormProps) {
  const t = useText(scripts);
  const { node, edit } = props;
  const type = node.type ?? "";
  const known = Object.entries(TYPES).map(([value, words]) => ({ value, label: t(words) }));
  const options = type === "" || type in TYPES ? known : [...known, { value: type, label: type }];
  return (
    <>
      <Form layout="vertical" component="div">
        <Field keys={["type"]} label={t("type")} htmlFor="action-type">
          <Select
            id="action-type"
            value={type}
            options={options}
            onChange={(value: string) => edit((text) => setField(text, node.path, "type", value), "")}
          />
        </Field>
      </Form>
      <TypedForm key={`${node.id} ${type}`} {...props} />
      <MoreForm key={node.id} {...props} />
    </>
  );
}

function TypedForm({ parsed, node, known, held, edit }: PartFormProps) {
  const { path } = node;
  const type = node.type ?? "";
  const part = { part: node.id, title: `${type} ${node.name}`.trim(), form: type };
  const common = { part, held, known };
  const group = `${node.id} form`;
  switch (type) {
    case "ai_say":
      return (
        <SayForm {...common} values={sayValues(parsed, path)} write={(values) => edit((text) => writeSay(text, path, values), group)} />
      );
    case "ai_ask":
      return (
        <AskForm {...common} values={askValues(parsed, path)} write={(values) => edit((text) => writeAsk(text, path, values), group)} />
      );
    case "ai_think":
      return (
        <ThinkForm {...common} values={thinkValues(parsed, path)} write={(values) => edit((text) => writeThink(text, path, values), group)} />
      );
    default:
      return (
        <ClientForm
          part={part}
          held={held}
          type={type}
          plainFields={formFields(parsed, path) !== null}
          values={clientValues(parsed, path, type)}
          write={(values) => edit((text) => writeClient(text, path, type, values), group)}
        />
      );
  }
}

const MORE = ["condition", "template", "action_id"] as const;

function MoreForm({ parsed, node, edit }: PartFormProps) {
  const t = useText(scripts);
  const labels = { condition: t("condition"), template: t("template"), action_id: t("actionId") };
  const hints = { condition: t("conditionHint"), template: null, action_id: null };
  return (
    <details className={styles["fold"]} open={useFindingsOf(MORE).length > 0 || undefined}>
      <summary>{t("more")}</summary>
      <Form layout="vertical" component="div">
        {MORE.map((key) => (
          <Field key={key} keys={[key]} label={labels[key]} htmlFor={`more-${key}`} extra={hints[key]}>
            <Input
              id={`more-${key}`}
              value={textAt(parsed, [...node.path, key])}
              onChange={({ target }) =>
                edit((text) => writeOptional(text, node.path, key, target.value, ["type"]), `${node.id} ${key}`)
              }
            />
          </Field>
        ))}
      </Form>
    </details>
  );
}
