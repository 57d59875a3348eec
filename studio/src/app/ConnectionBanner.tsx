import { Alert, Button } from "antd";
import { useEffect, useState } from "react";
import { checkConnection, useConnection, watchConnection } from "../api/connection.ts";
import { app } from "../i18n/texts/app.ts";
import { useText } from "../i18n/useText.ts";

/** Banner that the server does not answer, with the time of the next try. */
export function ConnectionBanner() {
  const t = useText(app);
  const { state, retryAt } = useConnection();
  useEffect(watchConnection, []);
  const seconds = useSecondsUntil(retryAt);
  if (state === "connected") return null;
  return (
    <Alert
      banner
      type="warning"
      role="status"
      title={t(state)}
      description={seconds === null ? undefined : t("retrying", { seconds })}
      action={
        <Button size="small" onClick={() => void checkConnection()}>
          {t("retry")}
        </Button>
      }
    />
  );
}

function useSecondsUntil(time: number | null): number | null {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (time === null) return undefined;
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [time]);
  return time === null ? null : Math.max(0, Math.ceil((time - now) / 1000));
}
