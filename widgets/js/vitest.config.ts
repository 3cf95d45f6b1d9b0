import { defineConfig } from "vitest/config";

export default defineConfig({
  define: { ENGINE_VERSIONS: JSON.stringify({ core: "test", graphviz: "test", mermaid: "test", lower: "test" }) },
  test: { environment: "jsdom", include: ["tests/**/*.test.ts"], setupFiles: ["tests/page.ts"], testTimeout: 20_000 },
});
