import { DeleteOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { ApiError } from "../api/errors.ts";
import { useProblemText } from "./useProblemText.ts";

type RemoveButtonProps = {
  /** Button name for screen readers. */
  label: string;
  /** Label of the button; only an icon when absent. */
  text?: string | undefined;
  question: { title: string; content: string; ok: string; cancel: string };
  /** Sentence shown after the removal. */
  removed: string;
  remove: () => Promise<unknown>;
  onRemoved: () => void;
};

/** Button that removes something after a confirmation. */
export function RemoveButton({ label, text, question, removed, remove, onRemoved }: RemoveButtonProps) {
  const { modal, message } = App.useApp();
  const { line } = useProblemText();

  function ask(): void {
    modal.confirm({
      title: question.title,
      content: question.content,
      okText: question.ok,
      okButtonProps: { danger: true },
      cancelText: question.cancel,
      onOk: async () => {
        try {
          await remove();
          void message.success(removed);
          onRemoved();
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          void message.error(line(error));
        }
      },
    });
  }

  return (
    <Button
      type={text === undefined ? "text" : "default"}
      danger={text !== undefined}
      icon={<DeleteOutlined />}
      aria-label={label}
      onClick={ask}
    >
      {text}
    </Button>
  );
}
