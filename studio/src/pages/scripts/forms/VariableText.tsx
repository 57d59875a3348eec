import { Button, Dropdown, Input, Tag } from "antd";
import { type TextAreaRef } from "antd/es/input/TextArea";
import { useRef } from "react";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { spelled, SYSTEM_VARIABLES, usedIn } from "../document/variables.ts";
import styles from "./Forms.module.css";

type VariableTextProps = {
  id?: string;
  value?: string;
  onChange?: (value: string) => void;
  /** Variables of the script that are known here. */
  known: readonly string[];
  rows?: number;
  placeholder?: string;
  "aria-describedby"?: string;
  "aria-invalid"?: boolean | "true" | "false";
  "aria-required"?: boolean | "true" | "false";
};

/** Text field with variables: they can be inserted, and undefined ones are marked. */
export function VariableText({ id, value = "", onChange, known, rows = 4, placeholder, ...aria }: VariableTextProps) {
  const t = useText(scripts);
  const area = useRef<TextAreaRef>(null);
  const used = usedIn(value, known);

  function insert(variable: string) {
    const element = area.current?.resizableTextArea?.textArea;
    const from = element?.selectionStart ?? value.length;
    const to = element?.selectionEnd ?? from;
    onChange?.(value.slice(0, from) + variable + value.slice(to));
    requestAnimationFrame(() => {
      element?.focus();
      element?.setSelectionRange(from + variable.length, from + variable.length);
    });
  }

  const item = (name: string, system: boolean) => {
    const variable = spelled({ name, system });
    return { key: variable, label: <code>{variable}</code>, onClick: () => insert(variable) };
  };
  const groups = [
    ...(known.length === 0
      ? []
      : [{ key: "script", type: "group" as const, label: t("ofScript"), children: known.map((name) => item(name, false)) }]),
    {
      key: "system",
      type: "group" as const,
      label: t("ofSystem"),
      children: SYSTEM_VARIABLES.map((name) => item(name, true)),
    },
  ];
  return (
    <>
      <Input.TextArea
        {...aria}
        {...(id === undefined ? {} : { id })}
        ref={area}
        rows={rows}
        showCount
        value={value}
        {...(placeholder === undefined ? {} : { placeholder })}
        onChange={({ target }) => onChange?.(target.value)}
      />
      <div className={styles["variables"]}>
        <Dropdown trigger={["click"]} menu={{ items: groups, className: styles["menu"] ?? "" }}>
          <Button size="small">{t("insertVariable")}</Button>
        </Dropdown>
        {used.length > 0 && (
          <ul className={styles["used"]} aria-label={t("used")}>
            {used.map((variable) => (
              <li key={spelled(variable)}>
                <Tag className={variable.known ? "" : (styles["undefined"] ?? "")}>
                  <code>{spelled(variable)}</code>
                  {!variable.known && ` ${t("undefinedVariable")}`}
                </Tag>
              </li>
            ))}
          </ul>
        )}
      </div>
    </>
  );
}
