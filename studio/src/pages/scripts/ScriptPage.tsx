import { useParams } from "react-router";
import { useResource } from "../../api/useResource.ts";
import { Page } from "../../components/Page.tsx";
import { app } from "../../i18n/texts/app.ts";
import { useText } from "../../i18n/useText.ts";
import { ScriptEditor } from "./editor/ScriptEditor.tsx";
import { openScript } from "./requests.ts";

/** One script, at `/scripts/{id}`; `?node=` names a part of it. */
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
