import { Alert, Button } from "antd";
import { type ApiError } from "../api/errors.ts";
import { common } from "../i18n/texts/common.ts";
import { useText } from "../i18n/useText.ts";
import { CodeWords } from "./CodeWords.tsx";
import { useProblemText } from "./useProblemText.ts";

type ErrorStateProps = {
  error: ApiError;
  onRetry?: () => void;
};

/** Error as the server describes it, with a way out. */
export function ErrorState({ error, onRetry }: ErrorStateProps) {
  const t = useText(common);
  const { headline } = useProblemText();
  return (
    <Alert
      type="error"
      showIcon
      role="alert"
      title={headline(error)}
      description={
        <>
          <div>
            <CodeWords text={error.isUnreachable ? t("disconnectedHint") : error.detail} />
          </div>
          {error.remedy !== null && (
            <div>
              <CodeWords text={error.remedy} />
            </div>
          )}
          {!error.isUnreachable && (
            <div>
              <small>
                {t("code", { code: error.code })}
                {error.requestId !== null && <> · {t("request", { id: error.requestId })}</>}
              </small>
            </div>
          )}
        </>
      }
      action={onRetry === undefined ? undefined : <Button onClick={onRetry}>{t("retry")}</Button>}
    />
  );
}
