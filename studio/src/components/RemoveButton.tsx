import { DeleteOutlined } from "@ant-design/icons";
import { App, Button } from "antd";
import { ApiError } from "../api/errors.ts";
import { useProblemText } from "./useProblemText.ts";

type RemoveButtonProps = {
  /** Name of the button for readers of the screen. */
  label: string;
  /** Word on the button; only its sign when absent. */
  text?: string | undefined;
  question: { title: string; content: string; ok: string; cancel: string };
  /** Sentence about the removal, once it is done. */
  removed: string;
  remove: () => Promise<unknown>;
  onRemoved: () => void;
};

/** Button that removes something after it has asked. */
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
