import { FolderOpenOutlined } from "@ant-design/icons";
import { Button, Input as Field, Select } from "antd";
import { type DragEvent, useEffect, useId, useRef, useState } from "react";
import { inspect } from "../../i18n/texts/inspect.ts";
import { useText } from "../../i18n/useText.ts";
import { DIALECTS } from "../live/request.ts";
import styles from "./Inspect.module.css";
import { type Input, inputOf, inputOfFile } from "./input.ts";
import { keepReply, LONGEST_KEPT } from "./keptReply.ts";

export type InspectOptions = { readonly dialect: string; readonly profile: "strict" | "lenient" };

type SourceFormProps = {
  start: string;
  options: InspectOptions;
  onOptions: (options: InspectOptions) => void;
  /** Called with a text that was typed or pasted. */
  onType: (text: string) => void;
  /** Called with what is to be inspected. */
  onInput: (input: Input | null) => void;
};

/** Most characters in the field; a longer text is treated like a file. */
const LONGEST = LONGEST_KEPT;

const EXAMPLE = `<thinking>
<phase id="1">
<title>Assess your squat</title>
Film yourself from the side.
<phase id="1">
<title>Widen your stance</title>
Turn your toes out a little.
</thinking>
<final>
Sit **between** your hips, not behind them.
</final>
`;

/** Input of the page: pasted, dropped or opened. */
export function SourceForm({ start, options, onOptions, onType, onInput }: SourceFormProps) {
  const t = useText(inspect);
  const [text, setText] = useState(start.length > LONGEST ? "" : start);
  const [over, setOver] = useState(false);
  const chooser = useRef<HTMLInputElement>(null);
  const id = useId();
  // Keeps the text for the way back from the page of a rule.
  useEffect(() => keepReply({ text, ...options }), [text, options]);

  async function open(file: File | undefined): Promise<void> {
    if (file === undefined) return;
    setText("");
    onInput(await inputOfFile(file));
  }

  function check(value: string): void {
    if (value.trim() !== "") onInput(inputOf(value));
  }

  function drop(event: DragEvent): void {
    event.preventDefault();
    setOver(false);
    void open(event.dataTransfer.files[0]);
  }

  return (
    // Files can be opened by a button as well.
    // eslint-disable-next-line jsx-a11y/no-static-element-interactions
    <div
      className={`${styles["source"] ?? ""} ${over ? (styles["over"] ?? "") : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <label htmlFor={id} className={styles["label"]}>
        {t("text")}
      </label>
      <Field.TextArea
        id={id}
        className={styles["field"] ?? ""}
        value={text}
        autoSize={{ minRows: 4, maxRows: 12 }}
        placeholder={t("textPlaceholder")}
        spellCheck={false}
        onChange={(change) => {
          setText(change.target.value);
          onType(change.target.value);
        }}
        onPaste={(paste) => {
          const pasted = paste.clipboardData.getData("text/plain");
          if (pasted.length <= LONGEST) return;
          paste.preventDefault();
          check(pasted);
        }}
        onKeyDown={(key) => {
          if (key.key === "Enter" && (key.ctrlKey || key.metaKey)) check(text);
        }}
      />
      <div className={styles["bar"]}>
        <Select
          aria-label={t("dialect")}
          className={styles["choice"] ?? ""}
          value={options.dialect}
          options={DIALECTS.map((value) => ({ value: value, label: value === "auto" ? t("automatic") : value }))}
          onChange={(dialect) => onOptions({ ...options, dialect })}
        />
        <Select
          aria-label={t("profile")}
          value={options.profile}
          options={(["strict", "lenient"] as const).map((value) => ({ value, label: t(value) }))}
          onChange={(profile) => onOptions({ ...options, profile })}
        />
        <input
          ref={chooser}
          type="file"
          hidden
          aria-label={t("file")}
          onChange={(change) => {
            void open(change.target.files?.[0]);
            change.target.value = "";
          }}
        />
        <Button icon={<FolderOpenOutlined />} onClick={() => chooser.current?.click()}>
          {t("open")}
        </Button>
        {text === "" ? (
          <Button
            type="link"
            onClick={() => {
              setText(EXAMPLE);
              onInput(inputOf(EXAMPLE));
            }}
          >
            {t("example")}
          </Button>
        ) : (
          <Button
            type="link"
            onClick={() => {
              setText("");
              onInput(null);
            }}
          >
            {t("clear")}
          </Button>
        )}
        <Button type="primary" disabled={text.trim() === ""} onClick={() => check(text)}>
          {t("check")}
        </Button>
      </div>
    </div>
  );
}
