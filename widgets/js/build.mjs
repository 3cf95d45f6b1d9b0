// Builds everything in ../static from src and node_modules. The result is the same, byte for byte, on every machine.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { build as esbuild, transform } from "esbuild";
import { notices } from "./notices.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "static");
/** A notebook saves viewer.js with every widget. */
const SHELL_LIMIT = 50 * 1024;

const common = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  loader: { ".css": "text" },
};

// The style sheet travels inside the script as a string: minify it on its own.
const minifiedCss = {
  name: "minified-css",
  setup(builder) {
    builder.onLoad({ filter: /\.css$/ }, async (args) => {
      const { code } = await transform(await readFile(args.path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

// Mermaid loads every diagram and layout by a dynamic import: only flowcharts and dagre get a real one.
const KEPT = /\/(flowDiagram|dagre)-[A-Z0-9]+\.mjs$/;
const ENTITIES = "const regex = /&(amp|lt|gt);/g;";
const flowchartOnly = {
  name: "flowchart-only",
  setup(builder) {
    let patched = 0;
    builder.onResolve({ filter: /.*/ }, (args) => {
      const unused = args.kind === "dynamic-import" && !KEPT.test(args.path);
      const heavy = /^(cytoscape|katex)/.test(args.path);
      return unused || heavy ? { path: args.path, namespace: "left-out" } : undefined;
    });
    // Mermaid writes `#91;` in labels as `&#91;`, and with SVG labels forgets to turn numbers back into characters.
    builder.onLoad({ filter: /mermaid\.core\/chunk-[A-Z0-9]+\.mjs$/ }, async (args) => {
      const contents = await readFile(args.path, "utf8");
      if (!contents.includes(ENTITIES)) return undefined;
      patched += 1;
      const characters = "text = text.replace(/&#(\\d+);/g, (_, code) => String.fromCodePoint(Number(code)));";
      return { contents: contents.replace(ENTITIES, `${characters}\n  ${ENTITIES}`), loader: "js" };
    });
    builder.onEnd(() => {
      if (patched !== 1)
        throw new Error(`${patched} places decode entities in this Mermaid, not one: look at flowchartOnly`);
    });
    builder.onLoad({ filter: /.*/, namespace: "left-out" }, (args) => {
      const message = JSON.stringify(`${args.path} is left out of this build`);
      return { contents: `export default function leftOut() { throw new Error(${message}); }`, loader: "js" };
    });
  },
};

/** All files that went into a bundle. */
const bundled = [];

async function bundle(options, versions = {}, more = {}) {
  const define = { ENGINE_VERSIONS: JSON.stringify(versions), ...more };
  const result = await esbuild({ ...common, ...options, define, metafile: true });
  // A file that minifying has emptied is not in the bundle.
  const [{ inputs }] = Object.values(result.metafile.outputs);
  bundled.push(...Object.keys(inputs).filter((file) => inputs[file].bytesInOutput > 0));
  return Buffer.from(result.outputFiles[0].contents);
}

const hash = (data) => createHash("sha256").update(data).digest("hex").slice(0, 12);

/** gzip with no time stamp and no machine's mark in its header. */
function gzip(data) {
  const packed = gzipSync(data, { level: 9, memLevel: 9 });
  packed.fill(0, 4, 8);
  packed[9] = 255;
  return packed;
}

const graphviz = await bundle({ entryPoints: ["src/engines/graphviz.ts"], format: "iife" });
const mermaid = await bundle({
  entryPoints: ["src/engines/mermaid.ts"],
  format: "esm",
  plugins: [flowchartOnly, minifiedCss],
});
const viewer = { format: "esm", plugins: [minifiedCss] };
const lower = await bundle({ ...viewer, entryPoints: ["src/engines/lower.ts"] });
// A page that holds an engine of another build asks for its own: the hash of a script is its version.
const page = await bundle({ entryPoints: ["src/page/worker.ts"], format: "iife" });
const versions = {
  core: "",
  graphviz: hash(graphviz),
  mermaid: hash(mermaid),
  lower: hash(lower),
  page: hash(page),
};
const core = await bundle({ ...viewer, entryPoints: ["src/shell/mount.ts"] }, versions);
versions.core = hash(core);
const shell = await bundle({ ...viewer, entryPoints: ["src/shell/anywidget.ts"] }, versions);
const stills = await bundle({ entryPoints: ["src/stills/engine.ts"], format: "iife", plugins: [minifiedCss] });
const standalone = await bundle({ ...viewer, entryPoints: ["src/shell/standalone.ts"], format: "iife" }, versions);
const scripts = { SCRIPTS_VERSION: JSON.stringify(hash(Object.values(versions).join(""))) };
const labextension = await bundle({ entryPoints: ["src/shell/labextension.ts"], format: "iife" }, versions, scripts);
// JupyterLab keeps a script under its address for ten years: another build has another address.
const { license, description } = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
const release = await readFile(join(here, "..", "..", "graphcore", "release.py"), "utf8");
const [, version] = release.match(/package_version = "(.+?)"/);
const load = `static/remoteEntry.js?v=${hash(labextension)}`;
const build = { load, extension: "./extension", mimeExtension: "./mimeExtension" };
const extensionFile = { name: "graphloupe", version, description, license, jupyterlab: { _build: build } };

if (shell.length > SHELL_LIMIT)
  throw new Error(`viewer.js has ${shell.length} bytes, at most ${SHELL_LIMIT} are allowed`);

const files = {
  "viewer.js": shell,
  "standalone.js": standalone,
  "core.js.gz": gzip(core),
  "graphviz.js.gz": gzip(graphviz),
  "lower.js.gz": gzip(lower),
  "page.js.gz": gzip(page),
  "stills.js.gz": gzip(stills),
  "mermaid.js.gz": gzip(mermaid),
  "labextension.js": labextension,
  "labextension.json": Buffer.from(`${JSON.stringify(extensionFile, null, 2)}\n`),
  "THIRD_PARTY.md": await notices(here, bundled),
};
// `--check` writes nothing and says which committed files differ. Packed files are compared by what is in them:
// compressed bytes may differ from one zlib to the next.
const content = (name, data) => (name.endsWith(".gz") ? gunzipSync(data) : data);
const checking = process.argv.includes("--check");
for (const [name, data] of Object.entries(files)) {
  const path = join(target, name);
  const known = await readFile(path).catch(() => null);
  const same = known !== null && content(name, known).equals(content(name, data));
  if (checking && !same) process.exitCode = 1;
  if (!checking && !same) await writeFile(path, data);
  const verdict = same ? "unchanged" : checking ? "DIFFERS: run npm run build" : "written";
  console.log(`${name.padEnd(16)} ${String(data.length).padStart(8)} bytes  ${verdict}`);
}
