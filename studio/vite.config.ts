import { writeFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

/** Server that `npm run dev` passes the interface on to. */
const server = process.env["TAMBOUR_URL"] ?? "http://127.0.0.1:8787";

export default defineConfig({
  plugins: [
    react(),
    // A build empties the folder; the file that git knows is written back.
    { name: "keep-gitignore", closeBundle: () => { writeFileSync("dist/.gitignore", "*\n!.gitignore\n"); } },
  ],
  build: { assetsInlineLimit: 0, target: "es2022", chunkSizeWarningLimit: 1500 },
  server: {
    port: 5173,
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
