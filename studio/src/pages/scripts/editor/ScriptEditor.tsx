import { ArrowLeftOutlined, HistoryOutlined, PlayCircleOutlined, RollbackOutlined } from "@ant-design/icons";
import { Alert, App, Button, Segmented } from "antd";
import { useMemo, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router";
import { ApiError } from "../../../api/errors.ts";
import { type EditorHandle, YamlEditor } from "../../../components/CodeEditor.tsx";
import { EmptyState } from "../../../components/EmptyState.tsx";
import { ErrorState } from "../../../components/ErrorState.tsx";
import { Page } from "../../../components/Page.tsx";
import { SaveState } from "../../../components/SaveState.tsx";
import { scripts } from "../../../i18n/texts/scripts.ts";
import { useText } from "../../../i18n/useText.ts";
import { unmoved } from "../document/follow.ts";
import { fieldAt, findNode, flatten, nodeAtLine, type OutlineNode, outlineOf } from "../document/outline.ts";
import { type Parsed, parse } from "../document/parse.ts";
import { duplicatePart, placePart, removePart, type Restructured, shiftPart } from "../document/structure.ts";
import { variablesAt } from "../document/variables.ts";
import { FindingList, otherFindings, PartFindings } from "../forms/FormFrame.tsx";
import { PartForm } from "../forms/PartForm.tsx";
import { shownKeys } from "../forms/shownKeys.ts";
import { MergeView } from "../merge/MergeView.tsx";
import { type OpenedScript, publishVersion, type ScriptFinding } from "../requests.ts";
import { Tags } from "../ScriptsPage.tsx";
import { ScriptTree } from "../tree/ScriptTree.tsx";
import styles from "./Editor.module.css";
import { Findings } from "./Findings.tsx";
import { GoneScript } from "./GoneScript.tsx";
import { Notices } from "./Notices.tsx";
import { PartButtons } from "./PartButtons.tsx";
import { useFindings, useSession } from "./useSession.ts";
import { VersionsDrawer } from "./VersionsDrawer.tsx";

type Pane = "tree" | "form" | "text";

/** Editor of a script: its parts, the form of one, and the text, all of one document. */
export function ScriptEditor({ opened }: { opened: OpenedScript }) {
  const t = useText(scripts);
  const { message } = App.useApp();
  const { id, name } = opened.script;
  const [session, now] = useSession(opened);
  const findings = useFindings(now.text);
  const [query, setQuery] = useSearchParams();
  const [pane, setPane] = useState<Pane>("tree");
  const [versions, setVersions] = useState(false);
  const [refused, setRefused] = useState<ApiError | null>(null);
  // Version saved by another user, which prevented a publish.
  const [overtaken, setOvertaken] = useState<number | null>(null);
  const [handle, setHandle] = useState<EditorHandle | null>(null);
  const navigate = useNavigate();
  // A new part shows no findings until it is edited.
  const [fresh, setFresh] = useState<{ id: string; text: string } | null>(null);
  const parsed = useMemo(() => parse(now.text), [now.text]);
  const nodes = useMemo(() => outlineOf(parsed), [parsed]);
  const [chosenId, setChosenId] = useState(() => query.get("node"));
  const chosen = chosenId === null ? null : findNode(nodes, chosenId);
  const faulty = useMemo(() => partsOf(nodes, findings), [nodes, findings]);
  const isFresh = fresh !== null && fresh.id === chosenId && fresh.text === now.text;
  const findingsHere = useMemo(
    () => (chosen === null || isFresh ? [] : findings.filter(({ path }) => belongsTo(path, chosen.id)).map((finding) => inField(parsed, chosen, finding))),
    [chosen, findings, isFresh, parsed],
  );
  const known = chosen === null ? [] : variablesAt(parsed, nodes, chosen);

  function choose(node: string | null) {
    setChosenId(node);
    setFresh(null);
    setQuery(node === null ? {} : { node }, { replace: true });
  }

  function show(node: string) {
    choose(node);
    const line = findNode(nodes, node)?.line;
    if (handle === null || line === undefined) return;
    const { from } = handle.view.state.doc.line(Math.min(line, handle.view.state.doc.lines));
    handle.view.dispatch({ selection: { anchor: from }, scrollIntoView: true });
  }

  function restructure({ text, chosen: next, follow }: Restructured) {
    session.change(text, null, follow);
    choose(next);
  }

  function add(done: Restructured) {
    restructure(done);
    setFresh(done.chosen === null ? null : { id: done.chosen, text: done.text });
  }

  async function run() {
    if (!(await session.flush())) return;
    const query = new URLSearchParams({ script: id, version: String(session.snapshot().version), new: "" });
    await navigate(`/run?${query.toString()}`);
  }

  /** Publishes a version; returns the error if refused. */
  async function publish(version: number): Promise<ApiError | null> {
    setOvertaken(null);
    try {
      await publishVersion(id, version, session.snapshot().version);
      session.hasPublished(version);
      void message.success(t("publishDone", { version: String(version) }));
      return null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const met = session.meet(error);
      if (met === null) return error;
      setVersions(false);
      if (met === "shown") setOvertaken(session.snapshot().version);
      return null;
    }
  }

  async function publishLast() {
    setRefused(null);
    if (await session.flush()) setRefused(await publish(session.snapshot().version));
  }

  function goTo(finding: ScriptFinding) {
    const node = nodeAtLine(parsed, nodes, finding.line);
    if (node !== null) choose(node.id);
    setPane("text");
    handle?.goTo(finding.line, finding.column);
  }

  function onReady(ready: EditorHandle) {
    setHandle(ready);
    const follow = () => {
      const { doc, selection } = ready.view.state;
      const text = parse(doc.toString());
      const node = nodeAtLine(text, outlineOf(text), doc.lineAt(selection.main.head).number);
      if (node !== null) choose(node.id);
    };
    ready.view.dom.addEventListener("click", follow);
  }

  // Invalid values in forms are not saved either.
  const state = now.state === "saved" && now.waiting.length > 0 ? "unsaved" : now.state;
  const save = { state, error: now.error, flush: session.flush };
  // An unfinished script is no failure: it is kept here until the server accepts it.
  const unfinished = now.state === "failed" ? refusalOf(now.error) : null;
  const kept = unfinished === null ? null : t("draftKept", { reason: unfinished });
  // Invalid values in forms would be missing in the published version.
  const obstacle = kept ?? (now.waiting.length > 0 ? t("formsInvalid") : null);
  const closed = now.conflict !== null || obstacle !== null;
  const theirs = now.conflict?.theirs ?? null;
  const actions = (
    <>
      {/* The notice of a conflict already says why nothing was saved. */}
      {now.conflict === null && <SaveState save={save} kept={kept} />}
      <Button
        icon={<RollbackOutlined aria-hidden="true" />}
        aria-label={t("undo")}
        title={t("undo")}
        disabled={!now.canUndo}
        onClick={() => session.undo()}
      />
      <Button
        icon={<RollbackOutlined className={styles["mirrored"] ?? ""} aria-hidden="true" />}
        aria-label={t("redo")}
        title={t("redo")}
        disabled={!now.canRedo}
        onClick={() => session.redo()}
      />
      <Button icon={<HistoryOutlined aria-hidden="true" />} onClick={() => setVersions(true)}>
        {t("versions")}
      </Button>
      <Button icon={<PlayCircleOutlined aria-hidden="true" />} disabled={closed} title={obstacle ?? ""} onClick={() => void run()}>
        {t("run")}
      </Button>
      <Button
        type="primary"
        disabled={closed || (now.state === "saved" && now.published === now.version)}
        title={obstacle ?? (now.state === "saved" && now.published === now.version ? t("upToDate") : "")}
        onClick={() => void publishLast()}
      >
        {t("publish")}
      </Button>
    </>
  );

  return (
    <Page
      wide
      title={name}
      purpose={
        <>
          <Link to="/scripts">
            <ArrowLeftOutlined aria-hidden="true" /> {t("back")}
          </Link>
          {" · "}
          <Tags published={now.published} latest={now.version} />
        </>
      }
      actions={actions}
    >
      {refused !== null && <ErrorState error={refused} />}
      {overtaken !== null && now.conflict === null && (
        <Alert
          className={styles["notice"] ?? ""}
          type="warning"
          showIcon
          role="alert"
          closable={{ onClose: () => setOvertaken(null) }}
          title={t("overtaken", { version: String(overtaken) })}
          description={t("overtakenHint")}
        />
      )}
      {now.conflict !== null && theirs === null && <GoneScript name={name} session={session} text={now.text} />}
      <Notices session={session} now={now} chosen={chosenId} onChoose={choose} />
      {now.conflict !== null && theirs !== null ? (
        <MergeView key={now.conflict.version} mine={now.text} theirs={theirs} base={session.base} onMerged={(text) => session.resolve(text)} />
      ) : (
        <>
          <Segmented
            className={styles["narrow"] ?? ""}
            aria-label={t("parts")}
            value={pane}
            onChange={(value) => setPane(value)}
            options={[
              { value: "tree" as const, label: t("structure") },
              { value: "form" as const, label: t("form") },
              { value: "text" as const, label: t("text") },
            ]}
          />
          <div className={styles["panes"]}>
            <section className={paneClass(pane === "tree")} aria-label={t("structure")}>
              <h2 className={styles["paneTitle"]}>{t("structure")}</h2>
              <PartButtons session={session} nodes={nodes} chosen={chosen} broken={parsed.error !== null} add={add} restructure={restructure} />
              <div className={styles["tree"]}>
                {nodes.length === 0 ? (
                  <EmptyState title={parsed.error === null ? t("noParts") : t("unreadable")} />
                ) : (
                  <ScriptTree
                    nodes={nodes}
                    chosen={chosenId}
                    faulty={faulty}
                    actions={{
                      choose: show,
                      shift: (node, by) => restructure(shiftPart(session.text, nodes, node, by)),
                      duplicate: (node) => restructure(duplicatePart(session.text, node)),
                      remove: (node) => restructure(removePart(session.text, node)),
                      place: (node, parent, index) => restructure(placePart(session.text, node, parent, index)),
                    }}
                  />
                )}
              </div>
            </section>
            <section className={paneClass(pane === "form")} aria-label={t("form")}>
              <h2 className={styles["paneTitle"]}>
                {chosen === null ? t("form") : `${t(chosen.kind)}${chosen.kind === "action" ? "" : ` · ${chosen.name}`}`}
              </h2>
              {chosen === null ? (
                <EmptyState title={t("choosePart")} hint={t("choosePartHint")} />
              ) : (
                <>
                  <PartFindings value={{ part: chosen.id, findings: findingsHere }}>
                    <PartForm
                      parsed={parsed}
                      node={chosen}
                      known={known}
                      held={session}
                      isNew={isFresh}
                      edit={(change, group) => session.change(change(session.text), group === "" ? null : group, unmoved)}
                    />
                  </PartFindings>
                  <FindingList findings={otherFindings(chosen.id, findingsHere, shownKeys(chosen.kind, chosen.type))} />
                </>
              )}
            </section>
            <section className={paneClass(pane === "text")} aria-label={t("text")}>
              <h2 className={styles["paneTitle"]}>{t("text")}</h2>
              {parsed.error !== null && (
                <p role="alert" className={styles["error"]}>
                  {t("unreadable")}
                  {": "}
                  {t("unreadableHint", { line: String(parsed.error.line), column: String(parsed.error.column), message: parsed.error.message })}
                </p>
              )}
              <YamlEditor
                value={now.text}
                label={t("text")}
                height="min(620px, 62vh)"
                diagnostics={findings}
                onChange={(text) => session.change(text, "text")}
                onReady={onReady}
              />
              <Findings findings={findings} onGo={goTo} />
            </section>
          </div>
        </>
      )}
      {versions && (
        <VersionsDrawer
          key={now.version}
          id={id}
          published={now.published}
          onPublish={publish}
          onTake={(text) => {
            session.change(text);
            setVersions(false);
          }}
          onClose={() => setVersions(false)}
        />
      )}
    </Page>
  );
}

const paneClass = (shown: boolean): string => `${styles["pane"] ?? ""} ${shown ? "" : (styles["hidden"] ?? "")}`;

/** Reason why the server refuses a script as unfinished; null for every other error. */
function refusalOf(error: Error | null): string | null {
  if (!(error instanceof ApiError) || error.code !== "invalid_script") return null;
  const [first] = (error.problem["errors"] ?? []) as readonly { readonly message?: string }[];
  return first?.message ?? error.detail;
}

/** True if a finding is about the part itself, not about one below it. */
function belongsTo(path: string, id: string): boolean {
  if (path !== id && !path.startsWith(`${id}.`)) return false;
  return !/\.(?:phases|steps|topics|actions)\[\d+\]/.test(path.slice(id.length));
}

/** Finding of a part, with the path of its field if it has one. */
function inField(parsed: Parsed, node: OutlineNode, finding: ScriptFinding): ScriptFinding {
  const field = finding.path === node.id ? fieldAt(parsed, node, finding.line, finding.column) : null;
  return field === null ? finding : { ...finding, path: `${finding.path}.${field}` };
}

const partsOf = (nodes: ReturnType<typeof outlineOf>, findings: readonly ScriptFinding[]): ReadonlySet<string> =>
  new Set(
    flatten(nodes)
      .filter(({ id }) => findings.some(({ path, severity }) => severity === "error" && belongsTo(path, id)))
      .map(({ id }) => id),
  );
