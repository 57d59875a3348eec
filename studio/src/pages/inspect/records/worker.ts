import { type FromWorker, type ToWorker } from "./protocol.ts";
import { readRows } from "./readRows.ts";

const scope = self as unknown as {
  postMessage: (message: FromWorker) => void;
  addEventListener: (name: "message", listener: (event: MessageEvent<ToWorker>) => void) => void;
};

async function index({ file }: ToWorker): Promise<void> {
  try {
    for await (const { rows, bytes } of readRows(file)) scope.postMessage({ kind: "rows", rows, bytes });
    scope.postMessage({ kind: "done" });
  } catch (error) {
    scope.postMessage({ kind: "failed", message: error instanceof Error ? error.message : String(error) });
  }
}

scope.addEventListener("message", ({ data }) => void index(data));
