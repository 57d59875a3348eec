import { DeleteOutlined, DownloadOutlined, EditOutlined, PlayCircleOutlined, ReloadOutlined } from "@ant-design/icons";
import { Alert, App, Button, Popconfirm } from "antd";
import { useEffect, useState } from "react";
import { Link, useLocation, useNavigate, useParams, useSearchParams } from "react-router";
import { api, send } from "../../api/client.ts";
import { ApiError } from "../../api/errors.ts";
import { download } from "../../components/download.ts";
import { ErrorState } from "../../components/ErrorState.tsx";
import { Page } from "../../components/Page.tsx";
import { Plot } from "../../components/Plot.tsx";
import { Section } from "../../components/Section.tsx";
import { useProblemText } from "../../components/useProblemText.ts";
import { run } from "../../i18n/texts/run.ts";
import { useText } from "../../i18n/useText.ts";
import { Chat } from "./Chat.tsx";
import { Composer } from "./Composer.tsx";
import styles from "./DialoguePage.module.css";
import { isOver, type Position, resultOf } from "./model.ts";
import { PlaceTree } from "./PlaceTree.tsx";
import { ReplayTest } from "./ReplayTest.tsx";
import { RoundDrawer } from "./RoundDrawer.tsx";
import { nameOf, useScripts } from "./scripts.ts";
import { type StartState } from "./StartForm.tsx";
import { StatusTag } from "./StatusTag.tsx";
import { understandingOf } from "./understanding.ts";
import { useDialogue, type Whole } from "./useDialogue.ts";
import { type Play, usePlay } from "./usePlay.ts";
import { useTurn } from "./useTurn.ts";

/** Dialogue beside its script. */
export function Component() {
  const { dialogueId = "" } = useParams();
  // A fork opened from here is another dialogue, and shares no state with this one.
  return <Dialogue key={dialogueId} id={dialogueId} />;
}

function Dialogue({ id }: { id: string }) {
  const t = useText(run);
  const scripts = useScripts();
  const { data, error, reload } = useDialogue(id);
  // Reads it once, so that going back to the page does not play again.
  const [play] = useState<Play | null>(usePlayOnce());
  const script = data === null ? "" : nameOf(scripts.data, data.dialogue.script_id);
  const title = data === null ? t("chat") : `${script} · ${data.dialogue.session ?? ""}`;
  return (
    <Page
      wide
      title={title}
      purpose={
        data !== null && (
          <span className={styles["facts"]}>
            <StatusTag status={data.dialogue.status} />
            <Link to={`/run?script=${data.dialogue.script_id}`}>{t("backToRuns")}</Link>
            <Link to={`/scripts/${data.dialogue.script_id}`}>{t("version", { version: data.dialogue.version })}</Link>
            {data.dialogue.forked_from != null && (
              <span>
                {t("forkedFrom")}: <Link to={`/run/${data.dialogue.forked_from.dialogue_id}`}>{t("original")}</Link>
              </span>
            )}
          </span>
        )
      }
      actions={data !== null && <Actions whole={data} />}
      loading={data === null && error === null}
      error={data === null ? error : null}
      onRetry={reload}
    >
      {data !== null && <Body id={id} whole={data} play={play} reload={reload} />}
    </Page>
  );
}

function usePlayOnce(): Play | null {
  const location = useLocation();
  const state = location.state as StartState | null;
  useEffect(() => {
    if (state?.play !== undefined) window.history.replaceState({ ...window.history.state as object, usr: null }, "");
  }, [state]);
  return state?.play ?? null;
}

function Actions({ whole }: { whole: Whole }) {
  const t = useText(run);
  const { line } = useProblemText();
  const navigate = useNavigate();
  const { message } = App.useApp();
  const [replaying, setReplaying] = useState(false);
  const { dialogue_id: id, script_id: script } = whole.dialogue;
  const told = (error: unknown) => {
    if (!(error instanceof ApiError)) throw error;
    void message.error(line(error));
  };
  const save = async () => {
    const response = await send(`/api/v1/dialogues/${encodeURIComponent(id)}/test`);
    const file = `${whole.dialogue.session ?? "run"}.test.yaml`;
    download(file, await response.text(), "application/yaml");
    void message.success(t("testSaved", { file, count: whole.turns.length }));
  };
  const remove = async () => {
    await api.remove("/api/v1/dialogues/{id}", { path: { id } });
    await navigate(`/run?script=${script}`);
  };
  const again = new URLSearchParams({ script, version: String(whole.dialogue.version), new: "" });
  return (
    <>
      <Button icon={<EditOutlined />} onClick={() => void navigate(`/scripts/${script}`)}>
        {t("editScript")}
      </Button>
      <Button icon={<ReloadOutlined />} onClick={() => void navigate(`/run?${again.toString()}`)}>
        {t("runAgain")}
      </Button>
      <Button icon={<DownloadOutlined />} disabled={whole.turns.length === 0} onClick={() => void save().catch(told)}>
        {t("saveTest")}
      </Button>
      <Button icon={<PlayCircleOutlined />} onClick={() => setReplaying(true)}>
        {t("replay")}
      </Button>
      <Popconfirm title={t("removeAsk")} okText={t("remove")} cancelText={t("cancel")} onConfirm={() => void remove().catch(told)}>
        <Button danger icon={<DeleteOutlined />} aria-label={t("remove")} />
      </Popconfirm>
      {replaying && <ReplayTest dialogue={id} script={script} onClose={() => setReplaying(false)} />}
    </>
  );
}

type BodyProps = { id: string; whole: Whole; play: Play | null; reload: () => void };

function Body({ id, whole, play, reload }: BodyProps) {
  const t = useText(run);
  const { line } = useProblemText();
  const navigate = useNavigate();
  const { message } = App.useApp();
  const [params, setParams] = useSearchParams();
  const { dialogue, turns, rounds, coverage } = whole;
  const turn = useTurn(id, turns.length, reload);
  const playing = usePlay(id, play, reload);
  // A turn that has ended and is loaded is among the others.
  const pending = turn.pending !== null && turns.length <= turn.pending.after ? turn.pending : null;

  const inspected = Number(params.get("round") ?? "0");
  const inspect = (round: number | null) =>
    setParams(round === null ? {} : { round: String(round) }, { replace: round === null });
  const position = (dialogue.position ?? null) as Position | null;
  const understanding = understandingOf(rounds, coverage.actions);
  const last = dialogue.turn === undefined || turns.length === 0 ? null : resultOf(dialogue.turn);

  async function fork(of: string) {
    try {
      const { data } = await api.post("/api/v1/dialogues/{id}/forks", { turn: of }, { path: { id } });
      await navigate(`/run/${data.dialogue_id}`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      void message.error(line(error));
    }
  }

  const busy = pending !== null || playing.state.state === "playing";
  return (
    <div className={styles["body"]}>
      <div className={styles["talk"]}>
        <Played state={playing.state} />
        <div className={styles["chat"]}>
          <Chat turns={turns} rounds={rounds} pending={pending} onFork={(of) => void fork(of)} onInspect={inspect} />
        </div>
        {turn.error !== null && <ErrorState error={turn.error} />}
        <Composer
          status={dialogue.status}
          turn={last}
          busy={busy}
          onSay={turn.say}
          onCancel={playing.state.state === "playing" ? playing.cancel : turn.cancel}
        />
      </div>
      <div className={styles["side"]}>
        <div className={styles["plot"]}>
          <Plot
            title={t("understanding")}
            labelName={t("round")}
            labels={understanding.labels}
            series={[{ name: t("understanding"), values: understanding.values }]}
            height={170}
            range={[0, 100]}
            {...(understanding.threshold === null
              ? {}
              : { threshold: { value: understanding.threshold, name: t("threshold", { value: understanding.threshold }) } })}
          />
        </div>
        <Section title={t("place")}>
          <PlaceTree coverage={coverage} path={isOver(dialogue.status) ? null : (position?.path ?? null)} />
        </Section>
      </div>
      <RoundDrawer round={rounds.find(({ number }) => number === inspected) ?? null} onClose={() => inspect(null)} />
    </div>
  );
}

type Stopped = "ended" | "answers_used_up" | "max_turns";

function Played({ state }: { state: ReturnType<typeof usePlay>["state"] }) {
  const t = useText(run);
  if (state.state === "idle") return null;
  if (state.state === "playing") return <Alert type="info" showIcon title={t("playing")} role="status" />;
  if (state.error !== null) return <ErrorState error={state.error} />;
  const why = state.stopped === "failed" ? t("playFailed") : t(state.stopped as Stopped);
  return <Alert type={state.stopped === "failed" ? "error" : "success"} showIcon title={t("playEnded")} description={why} role="status" />;
}
