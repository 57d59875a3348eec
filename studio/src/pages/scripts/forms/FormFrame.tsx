import { QuestionCircleOutlined } from "@ant-design/icons";
import { Alert, Form, type FormItemProps, type FormProps } from "antd";
import { createContext, type ReactNode, useContext } from "react";
import { CodeWords } from "../../../components/CodeWords.tsx";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { type ScriptFinding } from "../requests.ts";
import styles from "./Forms.module.css";

type FormFrameProps<T> = FormProps<T> & { invalid: string | null; children: ReactNode };

/** Form of a part, with the reason why it is not saved. */
export function FormFrame<T extends object>({ invalid, children, ...form }: FormFrameProps<T>) {
  const t = useText(scripts);
  return (
    <Form<T> {...form} layout="vertical" requiredMark={false} preserve>
      {children}
      {/* Stands below the fields, so that none of them moves during typing. */}
      {invalid !== null && (
        <Alert type="warning" showIcon role="alert" title={t("notSavedInvalid", { reason: invalid })} style={{ marginBottom: 16 }} />
      )}
    </Form>
  );
}

/** Hint beside a label. */
export const hint = (title: string) => ({ title, icon: <QuestionCircleOutlined aria-hidden="true" /> });

/** Findings of the displayed part, and its path. */
export const PartFindings = createContext<{ readonly part: string; readonly findings: readonly ScriptFinding[] }>({ part: "", findings: [] });

/** True if a finding is about one of these fields of a part, or about something in them. */
const isAbout = ({ path }: ScriptFinding, part: string, keys: readonly string[]): boolean =>
  keys.some((key) => path === `${part}.${key}` || path.startsWith(`${part}.${key}.`) || path.startsWith(`${part}.${key}[`));

/** Findings about fields of the displayed part. */
export function useFindingsOf(keys: readonly string[]): readonly ScriptFinding[] {
  const { part, findings } = useContext(PartFindings);
  return findings.filter((finding) => isAbout(finding, part, keys));
}

/** Findings of a part that no field of its form shows. */
export const otherFindings = (part: string, findings: readonly ScriptFinding[], keys: readonly string[]): readonly ScriptFinding[] =>
  findings.filter((finding) => !isAbout(finding, part, keys));

export function FindingList({ findings }: { findings: readonly ScriptFinding[] }) {
  if (findings.length === 0) return null;
  return (
    <ul className={styles["findings"]}>
      {findings.map(({ path, code, message, severity }) => (
        <li key={`${path} ${code} ${message}`} className={styles[severity]}>
          <CodeWords text={message} />
        </li>
      ))}
    </ul>
  );
}

/** Form field, with the findings at its keys below it. */
export function Field({ keys, extra, ...item }: FormItemProps & { keys: readonly string[] }) {
  const findings = useFindingsOf(keys);
  const below = findings.length === 0 ? extra : (
    <>
      {extra}
      <FindingList findings={findings} />
    </>
  );
  return <Form.Item {...item} extra={below} />;
}
