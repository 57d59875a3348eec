import { useParams } from "react-router";
import { useResource } from "../../api/useResource.ts";
import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { useText } from "../../i18n/useText.ts";
import { ScriptEditor } from "./editor/ScriptEditor.tsx";
import { openScript } from "./requests.ts";

/** Page of one script, at `/scripts/{id}`; `?node=` selects a part. */
export function Component() {
  const frame = useText(app);
  const { id = "" } = useParams();
  const opened = useResource(`script ${id}`, (signal) => openScript(id, signal));
  if (opened.data?.script.id !== id) {
    return (
      <Page title={frame("scripts")} loading={opened.loading} error={opened.error} onRetry={opened.reload} />
    );
  }
  return <ScriptEditor key={id} opened={opened.data} />;
}
