// The extension of JupyterLab and Notebook 7: a MIME renderer and plugins.
// A container of module federation that needs no webpack.
import { checkedPicture } from "./checked_picture";
import type { FindScript } from "./local_host";
import { modelPlugins } from "./model_files";
import { SIDE_PANEL_PLUGIN } from "./notebook7";
import { SavedPictureView } from "./saved_picture";
import { type ShareScope, sharing } from "./shared_modules";

declare const SCRIPTS_VERSION: string;

const NAME = "graphloupe";
const MIME_TYPE = "application/vnd.graphloupe.scene+json";
/** Below the rank of HTML, so that the picture is preferred to the still one of the same output. */
const RANK = 40;

/** The part of Lumino's widget that is used here. */
interface LuminoWidget {
  readonly node: HTMLElement;
  dispose(): void;
}

type LuminoModule = { readonly Widget: new () => LuminoWidget };

interface MimeModel {
  readonly data: Readonly<Record<string, unknown>>;
}

interface RendererOptions {
  readonly sanitizer: { sanitize(html: string): string };
}

const address = (document.currentScript as HTMLScriptElement).src;
let shared: ShareScope = {};

const findScript: FindScript = async (name) => {
  const url = new URL(`${name}.js.gz?v=${SCRIPTS_VERSION}`, address);
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url.pathname} is missing`);
  return new DataView(await answer.arrayBuffer());
};

/** The extension, with JupyterLab's own class of widgets. */
async function mimeExtension(): Promise<object> {
  const lumino = await sharing(shared)("@lumino/widgets");
  if (!lumino) throw new Error("JupyterLab shares no @lumino/widgets");
  const { Widget } = lumino as LuminoModule;

  class Renderer extends Widget {
    readonly #sanitizer: RendererOptions["sanitizer"];
    #view: SavedPictureView | null = null;

    constructor({ sanitizer }: RendererOptions) {
      super();
      this.#sanitizer = sanitizer;
    }

    renderModel({ data }: MimeModel): Promise<void> {
      this.#view?.dispose();
      const still = document.createElement("div");
      still.className = "jp-RenderedHTMLCommon";
      still.innerHTML = this.#sanitizer.sanitize(String(data["text/html"] ?? ""));
      this.node.replaceChildren(still);
      const picture = checkedPicture(data[MIME_TYPE]);
      this.#view = picture && new SavedPictureView(this.node, still, picture, findScript);
      return Promise.resolve();
    }

    override dispose(): void {
      this.#view?.dispose();
      super.dispose();
    }
  }

  const rendererFactory = {
    // Text from the picture reaches the page as text only, so that it is shown in notebooks that are not trusted, too.
    safe: true,
    mimeTypes: [MIME_TYPE],
    createRenderer: (options: RendererOptions) => new Renderer(options),
  };
  return { id: `${NAME}:picture`, rendererFactory, rank: RANK, dataType: "json" };
}

const container = {
  init: (scope: ShareScope): void => {
    shared = scope;
  },
  get: async (module: string): Promise<() => object> => {
    const found =
      module === "./extension" ? [SIDE_PANEL_PLUGIN, ...(await modelPlugins(sharing(shared)))] : await mimeExtension();
    return () => found;
  },
};
const page = globalThis as { _JUPYTERLAB?: Record<string, typeof container> };
page._JUPYTERLAB ??= {};
page._JUPYTERLAB[NAME] = container;
