import { App } from "antd";
import { conversations } from "../../i18n/texts/conversations.ts";
import { useText } from "../../i18n/useText.ts";

export type Notice = { readonly code: string; readonly message: string; readonly ref?: string };

/** Shows notices of the state as short, non-blocking toasts (F-212). */
export function useNotices(): { show: (notices: readonly Notice[]) => void; textOf: (notice: Notice) => string } {
  const t = useText(conversations);
  const { message } = App.useApp();
  const textOf = (notice: Notice) =>
    notice.code === "state_update_partial_failure" ? t("partialFailure") : notice.message;
  const show = (notices: readonly Notice[]) => {
    for (const notice of notices) {
      const more = notice.ref === undefined ? "" : ` (${notice.ref})`;
      void message.warning({ content: `${textOf(notice)}${more}`, duration: 4 });
    }
  };
  return { show, textOf };
}

/** Notices of a message, from its metadata. */
export function noticesOf(metadata: unknown): readonly Notice[] {
  const notices = (metadata as { notices?: unknown } | null | undefined)?.notices;
  return Array.isArray(notices) ? (notices as Notice[]) : [];
}
