// The viewer as a standalone page: scene and answers are in the page as JSON, nothing is fetched.
import * as lower from "../engines/lower";
import { localHost, MOST_PAGE_BYTES, statesOf } from "./local_host";
import { mount } from "./mount";
import { type StandaloneData, scriptsOf } from "./page_scripts";

/** Mounts the viewer in `#graphloupe` (or the body) with the data of `<script id="graphloupe-data">`. */
function start(): void {
  const text = document.getElementById("graphloupe-data")?.textContent ?? "";
  const place = document.getElementById("graphloupe") ?? document.body;
  const data = JSON.parse(text) as StandaloneData;
  const renderers = data.mermaid_engine_gzip_base64 ? (["graphviz", "mermaid"] as const) : (["graphviz"] as const);
  mount(place, localHost(data, scriptsOf(data), MOST_PAGE_BYTES), {
    offline: true,
    fixed: !data.graph_gzip_base64,
    height: "fill",
    language: data.language,
    renderers,
    lower: () => Promise.resolve(lower),
    ...statesOf(data, scriptsOf(data), MOST_PAGE_BYTES),
  });
  // The page contains only the viewer, so it gets all keys even before a click.
  document.addEventListener("keydown", (event) => {
    if (event.target !== document.body) return;
    event.preventDefault();
    place.querySelector(".gl-canvas")?.dispatchEvent(new KeyboardEvent("keydown", event));
  });
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();
