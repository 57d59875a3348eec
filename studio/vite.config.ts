import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** Server that `npm run dev` passes the interface on to. */
const server = process.env["TAMBOUR_URL"] ?? "http://127.0.0.1:8787";

/** Package for JavaScript. A build of the studio goes without it, and asks the server instead, where it was not built before. */
const core = join(import.meta.dirname, "../bindings/js");
const hasCore = ["dist/esm/index.js", "wasm/decoder.mjs", "wasm/decoder.wasm"].every((name) => existsSync(join(core, name)));

export default defineConfig({
  plugins: [
    react(),
    // A build empties the folder; the file that git knows is written back.
    { name: "keep-gitignore", closeBundle: () => { writeFileSync("dist/.gitignore", "*\n!.gitignore\n"); } },
  ],
  resolve: {
    alias: { "@tambour/core": hasCore ? join(core, "dist/esm/index.js") : join(import.meta.dirname, "src/decoder/absent.ts") },
  },
  build: { assetsInlineLimit: 0, target: "es2022", chunkSizeWarningLimit: 1500 },
  server: {
    port: 5173,
    fs: { allow: [".", core] },
    proxy: {
      // Without a key the server answers pages of its own address only; behind the proxy, the request is no page's.
      "^/(api|v1|livez|healthz|readyz|metrics|openapi\\.json|docs)": {
        target: server,
        changeOrigin: true,
        headers: { origin: server },
      },
    },
  },
  // Files that need a page say so in their first line: making one takes as long as most tests together.
  test: { include: ["src/**/*.test.{ts,tsx}"], environment: "node" },
});
