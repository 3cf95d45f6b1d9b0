// What the bundled engines are made of, with the licences that have to go along.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const HEAD = `# Third-party notices

The engines in this folder are built from the packages below (see widgets/js). Graphviz itself, inside
@hpcc-js/wasm-graphviz, is under the Eclipse Public License 2.0, whose text follows; its sources are at
<https://gitlab.com/graphviz/graphviz>. Graphviz contains Expat.
`;

/** What is inside the WebAssembly of a package, with the licence in the folder `licences`. */
const INSIDE = { "Graphviz (EPL-2.0)": "EPL-2.0.txt", "Expat (MIT)": "Expat.txt" };

/** The folder of the package that a bundled file belongs to: the innermost one below node_modules. */
function packageFolder(file) {
  const parts = file.split("/");
  const at = parts.lastIndexOf("node_modules");
  if (at < 0) return null;
  const length = parts[at + 1].startsWith("@") ? 3 : 2;
  return parts.slice(0, at + length).join("/");
}

async function licenceText(folder) {
  const names = (await readdir(folder)).filter((name) => /^(licen[sc]e|copying|notice)/i.test(name)).sort();
  const texts = await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")));
  return texts.map((text) => text.replaceAll("\r\n", "\n").trim()).join("\n\n");
}

/** The notices for the packages that these files (relative to `root`) come from. */
export async function notices(root, files) {
  const folders = [...new Set(files.map(packageFolder))].filter((folder) => folder !== null).sort();
  const byText = new Map();
  for (const folder of folders) {
    const { name, version, license } = JSON.parse(await readFile(join(root, folder, "package.json"), "utf8"));
    const text = await licenceText(join(root, folder));
    byText.set(text, [...(byText.get(text) ?? []), `${name} ${version} (${license ?? "licence below"})`]);
  }
  for (const [name, file] of Object.entries(INSIDE))
    byText.set((await readFile(join(root, "licences", file), "utf8")).trim(), [name]);
  const sections = [...byText].map(([text, names]) => {
    const body = text ? `\n\`\`\`text\n${text}\n\`\`\`\n` : "";
    return `## ${[...new Set(names)].join(", ")}\n${body}`;
  });
  return Buffer.from([HEAD, ...sections].join("\n"));
}
