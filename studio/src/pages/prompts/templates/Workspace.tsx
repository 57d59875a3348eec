import { ArrowLeftOutlined, CloudUploadOutlined, DeleteOutlined, SaveOutlined } from "@ant-design/icons";
import { Alert, App, Button, Tag } from "antd";
import { useEffect, useMemo, useState } from "react";
import { Link, useNavigate } from "react-router";
import { ApiError } from "../../../api/errors.ts";
import { type Diagnostic } from "../../../components/CodeEditor.tsx";
import { Page } from "../../../components/Page.tsx";
import { useProblemText } from "../../../components/useProblemText.ts";
import { prompts } from "../../../i18n/texts/prompts.ts";
import { templates } from "../../../i18n/texts/templates.ts";
import { useText } from "../../../i18n/useText.ts";
import { ConflictDialog } from "./ConflictDialog.tsx";
import { forgetDraft, keepDraft, keptDraft } from "./draft.ts";
import { FilledPrompt } from "./FilledPrompt.tsx";
import { isOvertaken, type LoadedTemplate, loadTemplate, presentTemplate, removeTemplate, saveTemplate } from "./saveTemplate.ts";
import { closest, piecesOf, placeOf, SYSTEM_NAMES } from "./templateText.ts";
import { TemplateText } from "./TemplateText.tsx";
import { VersionList } from "./VersionList.tsx";
import styles from "./Workspace.module.css";

/** Template in the editor, with its variables, the filled prompt and its versions. */
export function Workspace({ loaded }: { loaded: LoadedTemplate }) {
  const t = useText(templates);
  const shared = useText(prompts);
  const { message, modal } = App.useApp();
  const { line } = useProblemText();
  const navigate = useNavigate();
  const [base, setBase] = useState(loaded);
  // An earlier version opens unchanged; a draft continues from the last one.
  const [kept] = useState(() => (loaded.version === loaded.latest ? keptDraft(loaded.id) : null));
  const [restored, setRestored] = useState(kept !== null && kept.text !== loaded.text);
  const [text, setText] = useState(kept?.text ?? loaded.text);
  const [busy, setBusy] = useState<"draft" | "publish" | null>(null);
  const [theirs, setTheirs] = useState(
    kept !== null && kept.text !== loaded.text && kept.version !== loaded.version ? loaded : null,
  );
  const [saves, setSaves] = useState(0);
  // Change by another user that prevented a publish or removal.
  const [overtaken, setOvertaken] = useState<string | null>(null);
  const pieces = useMemo(() => piecesOf(text), [text]);
  const dirty = text !== base.text;
  const { id } = base;

  useEffect(() => {
    if (!dirty) return undefined;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener("beforeunload", warn);
    return () => window.removeEventListener("beforeunload", warn);
  }, [dirty]);

  const diagnostics = useMemo(
    () =>
      pieces.flatMap((piece): Diagnostic[] => {
        if (piece.kind !== "variable" || piece.layer !== "system" || SYSTEM_NAMES.includes(piece.name)) return [];
        const name = `{%${piece.name}%}`;
        const meant = closest(piece.name);
        const words =
          meant === null
            ? t("unknownSystem", { name })
            : t("unknownSystemClose", { name, meant: `{%${meant}%}` });
        const from = placeOf(text, piece.from);
        const to = placeOf(text, piece.to);
        return [{ ...from, endLine: to.line, endColumn: to.column, severity: "warning", message: words }];
      }),
    [pieces, text, t],
  );

  function change(next: string): void {
    setText(next);
    if (next === base.text) forgetDraft(id);
    else keepDraft(id, { text: next, version: base.version });
  }

  async function save(draft: boolean, on: LoadedTemplate = base): Promise<void> {
    setBusy(draft ? "draft" : "publish");
    setOvertaken(null);
    try {
      const outcome = await saveTemplate(on, text, { draft });
      if (outcome.kind === "conflict") {
        setTheirs(outcome.theirs);
      } else {
        const { version, etag } = outcome;
        setBase({ ...on, text, source: "stored", version, etag, latest: version, published: draft ? on.published : version });
        forgetDraft(id);
        setRestored(false);
        setTheirs(null);
        setSaves((before) => before + 1);
        void message.success(t(draft ? "savedDraft" : "savedPublished", { version }));
        for (const warning of outcome.warnings) void message.warning(warning);
        void navigate(`/prompts/templates/${encodeURIComponent(id)}`, { replace: true, state: { saved: version } });
      }
    } catch (error) {
      fail(error);
    }
    setBusy(null);
  }

  function fail(error: unknown): void {
    if (!(error instanceof ApiError)) throw error;
    void message.error(line(error));
  }

  /** Shows the other user's version; as a conflict if this page has unsaved text. */
  async function showPresent(words: (present: LoadedTemplate) => string): Promise<void> {
    try {
      const present = await presentTemplate(id);
      if (dirty || present.version === null) setTheirs(present);
      else {
        setBase(present);
        setText(present.text);
        setSaves((before) => before + 1);
      }
      setOvertaken(words(present));
    } catch (error) {
      fail(error);
    }
  }

  /** Notes the published version, and bases the next write on the ETag that the publish changed. */
  async function published(version: number): Promise<void> {
    setBase((before) => ({ ...before, published: version }));
    const now = await loadTemplate(id, null).catch(() => null);
    if (now !== null && now.latest === base.latest) setBase((before) => ({ ...before, etag: now.etag }));
  }

  function discard(): void {
    setText(base.text);
    forgetDraft(id);
    setRestored(false);
  }

  function remove(): void {
    modal.confirm({
      title: t("removeTitle"),
      content: t("removeText", { name: id }),
      okText: shared("remove"),
      okButtonProps: { danger: true },
      cancelText: shared("cancel"),
      onOk: async () => {
        setOvertaken(null);
        try {
          await removeTemplate(base);
          forgetDraft(id);
          void message.success(shared("removed", { name: id }));
          void navigate("/prompts");
        } catch (error) {
          if (isOvertaken(error)) await showPresent(({ version }) => t("notRemoved", { version: version ?? 0 }));
          else fail(error);
        }
      },
    });
  }

  const publishable = dirty || base.version === null || base.published !== base.version;
  return (
    <Page
      title={id}
      purpose={
        <span className={styles["purpose"]}>
          <Link to="/prompts">
            <ArrowLeftOutlined aria-hidden="true" /> {t("back")}
          </Link>
          <Tag>{t(base.source)}</Tag>
          {base.version !== null && <span>{t("showsVersion", { version: base.version })}</span>}
          <span role="status" className={dirty ? styles["dirty"] : styles["clean"]}>
            {dirty ? t("unsaved") : t("unchanged")}
          </span>
        </span>
      }
      actions={
        <>
          {dirty && <Button onClick={discard}>{t("discard")}</Button>}
          <Button
            icon={<SaveOutlined />}
            disabled={!dirty || busy !== null}
            loading={busy === "draft"}
            onClick={() => void save(true)}
          >
            {t("saveDraft")}
          </Button>
          <Button
            type="primary"
            icon={<CloudUploadOutlined />}
            disabled={!publishable || busy !== null}
            loading={busy === "publish"}
            onClick={() => void save(false)}
          >
            {t("publish")}
          </Button>
          {base.source === "stored" && base.version !== null && (
            <Button danger icon={<DeleteOutlined />} aria-label={shared("remove")} onClick={remove} />
          )}
        </>
      }
    >
      {overtaken !== null && (
        <Alert
          className={styles["note"] ?? ""}
          type="warning"
          showIcon
          role="alert"
          closable={{ onClose: () => setOvertaken(null) }}
          title={overtaken}
          description={t("overtakenHint")}
        />
      )}
      {restored && <Alert className={styles["note"] ?? ""} type="info" showIcon title={t("restored")} />}
      {base.source !== "stored" && (
        <Alert
          className={styles["note"] ?? ""}
          type="info"
          showIcon
          title={t(base.source === "builtin" ? "readsBuiltin" : "readsFile")}
        />
      )}
      <TemplateText label={t("text")} value={text} onChange={change} diagnostics={diagnostics} height="min(52vh, 560px)" />
      {diagnostics.length > 0 && (
        <ul className={styles["warnings"]}>
          {diagnostics.slice(0, 20).map(({ line, column, message: words }, index) => (
            <li key={index}>
              {words} <small>{shared("at", { line, column: column ?? 1 })}</small>
            </li>
          ))}
        </ul>
      )}
      <FilledPrompt id={id} pieces={pieces} />
      <VersionList
        key={saves}
        base={base}
        onPublished={(version) => void published(version)}
        onOvertaken={() =>
          void showPresent(({ version }) => (version === null ? t("removedMeanwhile") : t("notPublished", { version })))
        }
      />
      {theirs !== null && (
        <ConflictDialog
          theirs={theirs}
          mine={text}
          busy={busy !== null}
          onClose={() => setTheirs(null)}
          onTake={() => {
            setBase(theirs);
            setText(theirs.text);
            forgetDraft(id);
            setTheirs(null);
          }}
          onSave={() => void save(true, theirs)}
        />
      )}
    </Page>
  );
}
