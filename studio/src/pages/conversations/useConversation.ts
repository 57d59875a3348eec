import { api } from "../../api/client.ts";
import { type Schemas } from "../../api/types.ts";
import { type CursorList, useCursorList } from "../../api/useCursorList.ts";
import { type Resource, useResource } from "../../api/useResource.ts";
import { type Update } from "./operations.ts";
import { type Json } from "./stateTree.ts";

export type Message = Schemas["Record"];

export type ConversationData = {
  readonly head: Resource<Schemas["Conversation"]>;
  readonly messages: CursorList<Message>;
  readonly updates: CursorList<Update>;
  /** State with the version that a change is based on. */
  readonly state: Resource<{ state: Json; schema: Json; etag: string | null }>;
  /** Reloads everything that a change of the state affects. */
  readonly reloadState: () => void;
  readonly reload: () => void;
};

/** Data of the conversation page. */
export function useConversation(id: string): ConversationData {
  const path = { id };
  const head = useResource(
    `conversation ${id}`,
    async (signal) => (await api.get("/api/v1/conversations/{id}", { path, query: { limit: 1 }, signal })).data,
  );
  const messages = useCursorList<Message>(`messages ${id}`, {
    load: async (after, signal) => {
      const { data } = await api.get("/api/v1/conversations/{id}", { path, query: { after, limit: 200 }, signal });
      return { data: data.messages ?? [], has_more: data.has_more ?? false };
    },
    cursorOf: (row) => row.message_id,
    atLeast: Infinity,
  });
  const updates = useCursorList<Update>(`history ${id}`, {
    load: async (after, signal) =>
      (await api.get("/api/v1/conversations/{id}/state/history", { path, query: { after, limit: 200 }, signal })).data,
    cursorOf: (row) => String(row.position),
    atLeast: Infinity,
  });
  const state = useResource(`state ${id}`, async (signal) => {
    const { data, etag } = await api.get("/api/v1/conversations/{id}/state", { path, signal });
    return { ...(data as { state: Json; schema: Json }), etag };
  });
  const reloadState = () => {
    updates.reload();
    state.reload();
  };
  const reload = () => {
    head.reload();
    messages.reload();
    reloadState();
  };
  return { head, messages, updates, state, reloadState, reload };
}
