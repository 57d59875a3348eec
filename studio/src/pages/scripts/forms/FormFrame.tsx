import { QuestionCircleOutlined } from "@ant-design/icons";
import { Alert, Form, type FormProps } from "antd";
import { type ReactNode } from "react";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";

type FormFrameProps<T> = FormProps<T> & { invalid: string | null; children: ReactNode };

/** A form of a part, with the reason why it is not saved. */
export function FormFrame<T extends object>({ invalid, children, ...form }: FormFrameProps<T>) {
  const t = useText(scripts);
  return (
    <Form<T> {...form} layout="vertical" requiredMark={false} preserve>
      {invalid !== null && (
        <Alert type="warning" showIcon role="alert" title={t("notSavedInvalid", { reason: invalid })} style={{ marginBottom: 16 }} />
      )}
      {children}
    </Form>
  );
}

/** A hint beside a label. */
export const hint = (title: string) => ({ title, icon: <QuestionCircleOutlined aria-hidden="true" /> });
