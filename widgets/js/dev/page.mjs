// Writes build/dev.html: the sample scene in a standalone page, to look at without a kernel. `node dev/page.mjs`
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const built = join(here, "..", "..", "static");
const target = join(here, "..", "build");

const { outputFiles } = await build({
  entryPoints: [join(here, "sample.ts")],
  bundle: true,
  format: "esm",
  write: false,
});
const sample = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
const engine = async (name) => (await readFile(join(built, `${name}.js.gz`))).toString("base64");
const data = {
  message: sample.sceneMessage(sample.SAMPLE),
  engine_gzip_base64: await engine("graphviz"),
  mermaid_engine_gzip_base64: await engine("mermaid"),
};
const script = (await readFile(join(built, "standalone.js"), "utf8")).replaceAll("</script", "<\\/script");
const json = JSON.stringify(data).replaceAll("<", "\\u003c");
await mkdir(target, { recursive: true });
await writeFile(
  join(target, "dev.html"),
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Graphloupe sample</title>
<style>html,body{height:100%;margin:0}#graphloupe{height:100%}</style></head>
<body><div id="graphloupe"></div><script type="application/json" id="graphloupe-data">${json}</script><script>${script}</script></body></html>
`,
);
console.log(join(target, "dev.html"));
