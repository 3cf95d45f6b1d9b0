// Plugins of JupyterLab: pictures of model files, and a tile of the launcher that starts a notebook.
import type { Share } from "./shared_modules";

const NAME = "Graphloupe";
const MODEL = "graphloupe-model";
const TEXT = "graphloupe-text";
const CREATE = "graphloupe:new-notebook";
/** Files that nothing else in JupyterLab opens: a double click shows the picture. */
const BINARY = [
  ".onnx",
  ".pb",
  ".pt2",
  ".tflite",
  ".keras",
  ".safetensors",
  ".gguf",
  ".mlirbc",
  ".pt",
  ".pth",
  ".onnx.gz",
];
/** Files that may hold something else, or that an editor shows: "Open With" offers the picture. */
const OTHERS = [".h5", ".hdf5", ".pbtxt", ".mlir", ".npz", ".meta"];
const FIRST_CELL = `%load_ext kernelext
import graphcore as gc
%graph  # %graph model(x) shows a call of a PyTorch module or a JAX function`;
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 22 22"><g fill="none" stroke-width="1.6">
<path class="jp-icon3" stroke="#616161" d="M6 6.5 9 9M6 15.5 9 13"/>
<circle class="jp-icon-brand0" stroke="#1976d2" cx="12" cy="11" r="4.2"/><path class="jp-icon-brand0" stroke="#1976d2" d="m15.2 14.2 4 4"/>
<circle class="jp-icon3" stroke="#616161" cx="4" cy="5" r="2"/><circle class="jp-icon3" stroke="#616161" cx="4" cy="17" r="2"/></g></svg>`;

interface Signal<Value> {
  connect(slot: (sender: unknown, value: Value) => void): void;
}

interface Widget {
  readonly node: HTMLElement;
  readonly disposed: Signal<undefined>;
  addClass(name: string): void;
}

/** A document that is open; its model holds no content. */
interface Context {
  readonly path: string;
  readonly ready: Promise<void>;
  readonly fileChanged: Signal<unknown>;
}

type DocumentWidget = Widget & { readonly context: Context; readonly toolbar: { hide(): void } };

interface Settings {
  readonly baseUrl: string;
  readonly token: string;
  readonly init: RequestInit;
}

interface Contents {
  newUntitled(options: { path: string; type: string; ext: string }): Promise<{ readonly path: string }>;
  save(path: string, options: object): Promise<unknown>;
}

/** The part of the application that is used here. */
interface Application {
  readonly commands: {
    addCommand(id: string, options: object): void;
    execute(id: string, args: object): Promise<unknown>;
  };
  readonly docRegistry: {
    addFileType(type: object): void;
    addModelFactory(factory: object): void;
    addWidgetFactory(factory: object): void;
  };
  readonly serviceManager: {
    readonly serverSettings: Settings;
    readonly contents: Contents;
    readonly kernelspecs: { readonly specs: { readonly default: string } | null };
  };
}

interface Restorer {
  restore(tracker: object, options: object): void;
}

interface Launcher {
  add(item: object): void;
}

/** Classes and tokens of JupyterLab's own modules. */
interface Modules {
  readonly widgets: { readonly Widget: new () => Widget };
  readonly registry: {
    readonly ABCWidgetFactory: new (options: object) => { readonly widgetCreated: Signal<DocumentWidget> };
    readonly DocumentWidget: new (options: { content: Widget; context: Context }) => DocumentWidget;
    readonly TextModelFactory: new () => object;
  };
  readonly icons: { readonly LabIcon: new (options: { name: string; svgstr: string }) => object };
  readonly apputils: {
    readonly WidgetTracker: new (options: { namespace: string }) => { add(widget: Widget): Promise<void> };
  };
  readonly application: { readonly ILayoutRestorer: object };
  readonly launcher: { readonly ILauncher: object };
}

/** The page of a file, made by Jupyter's server; its error as an Error. */
async function pageOf({ baseUrl, token, init }: Settings, path: string): Promise<string> {
  const headers = token ? { Authorization: `token ${token}` } : undefined;
  const url = `${baseUrl}graphloupe/page?path=${encodeURIComponent(path)}`;
  const answer = await fetch(url, { ...init, ...(headers && { headers }) });
  const { page, message } = (await answer.json().catch(() => ({}))) as { page?: string; message?: string };
  if (answer.ok && page) return page;
  const missing = answer.status === 404 && !message;
  throw new Error(
    missing
      ? "Jupyter's server has no Graphloupe: install it there, and start the server again."
      : message || `status ${answer.status}`,
  );
}

/** Shows a page in a frame that has access to nothing else, in the theme of JupyterLab. */
class Frame {
  readonly #node: HTMLElement;
  readonly #load: () => Promise<string>;
  readonly #title: string;
  #page = "";
  #shown = 0;

  constructor(node: HTMLElement, title: string, load: () => Promise<string>) {
    this.#node = node;
    this.#title = title;
    this.#load = load;
  }

  async read(): Promise<void> {
    this.#shown += 1;
    const turn = this.#shown;
    if (!this.#page) this.#say(`Reading ${this.#title} …`);
    try {
      const page = await this.#load();
      if (turn !== this.#shown) return;
      this.#page = page;
      this.draw();
    } catch (error) {
      if (turn !== this.#shown) return;
      this.#page = "";
      this.#say(`${this.#title} cannot be shown. ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  draw(): void {
    if (!this.#page) return;
    const frame = document.createElement("iframe");
    frame.title = this.#title;
    frame.sandbox.add("allow-scripts", "allow-downloads");
    frame.style.cssText = "border:0;width:100%;height:100%;display:block";
    const light = document.body.dataset.jpThemeLight ?? "true";
    frame.srcdoc = this.#page.replace("<html ", `<html data-jp-theme-light="${light}" `);
    this.#node.replaceChildren(frame);
  }

  #say(text: string): void {
    const line = document.createElement("p");
    line.role = "status";
    line.style.cssText = "margin:24px;max-width:60em;color:var(--jp-ui-font-color1);white-space:pre-wrap";
    line.textContent = text;
    this.#node.replaceChildren(line);
  }
}

function opener({ widgets, registry, icons, apputils, application }: Modules): object {
  const activate = (app: Application, restorer: Restorer | null): void => {
    const { serverSettings } = app.serviceManager;
    const icon = new icons.LabIcon({ name: "graphloupe:graph", svgstr: ICON });
    const common = { contentType: "file", icon, mimeTypes: ["application/octet-stream"] };
    app.docRegistry.addFileType({
      ...common,
      name: MODEL,
      displayName: "Model",
      extensions: BINARY,
      fileFormat: "base64",
    });
    app.docRegistry.addFileType({
      ...common,
      name: TEXT,
      displayName: "Model",
      extensions: OTHERS,
      fileFormat: "text",
    });

    // A model of the document without its content, which the server reads: weights are large.
    class Unread extends registry.TextModelFactory {
      get name(): string {
        return MODEL;
      }
      get fileFormat(): null {
        return null;
      }
    }
    app.docRegistry.addModelFactory(new Unread());

    class Factory extends registry.ABCWidgetFactory {
      createNewWidget(context: Context): DocumentWidget {
        const content = new widgets.Widget();
        const widget = new registry.DocumentWidget({ content, context });
        widget.toolbar.hide(); // the page has its own
        const name = context.path.slice(context.path.lastIndexOf("/") + 1);
        const frame = new Frame(content.node, name, () => pageOf(serverSettings, context.path));
        const themes = new MutationObserver(() => frame.draw());
        themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
        widget.disposed.connect(() => themes.disconnect());
        void context.ready.then(() => {
          context.fileChanged.connect(() => void frame.read());
          return frame.read();
        });
        return widget;
      }
    }
    const fileTypes = [MODEL, TEXT];
    const factory = new Factory({ name: NAME, modelName: MODEL, fileTypes, defaultFor: [MODEL], readOnly: true });
    app.docRegistry.addWidgetFactory(factory);
    const tracker = new apputils.WidgetTracker({ namespace: "graphloupe-models" });
    factory.widgetCreated.connect((_sender, widget) => void tracker.add(widget));
    restorer?.restore(tracker, {
      command: "docmanager:open",
      args: ({ context }: DocumentWidget) => ({ path: context.path, factory: NAME }),
      name: ({ context }: DocumentWidget) => context.path,
    });
  };
  return { id: "graphloupe:model-files", autoStart: true, optional: [application.ILayoutRestorer], activate };
}

function tile({ icons, launcher: { ILauncher } }: Modules): object {
  const activate = (app: Application, launcher: Launcher | null): void => {
    const { contents, kernelspecs } = app.serviceManager;
    app.commands.addCommand(CREATE, {
      label: NAME,
      caption: "A notebook with a live picture of its graph",
      icon: new icons.LabIcon({ name: "graphloupe:notebook", svgstr: ICON }),
      execute: async ({ cwd = "" }: { cwd?: string }) => {
        const { path } = await contents.newUntitled({ path: cwd, type: "notebook", ext: ".ipynb" });
        const name = kernelspecs.specs?.default ?? "python3";
        const cell = (id: string, source: string) => ({
          cell_type: "code",
          id,
          metadata: {},
          execution_count: null,
          outputs: [],
          source,
        });
        const content = {
          nbformat: 4,
          nbformat_minor: 5,
          metadata: { kernelspec: { name, display_name: name } },
          cells: [cell("graph", FIRST_CELL), cell("first", "")],
        };
        await contents.save(path, { type: "notebook", format: "json", content });
        return app.commands.execute("docmanager:open", { path, factory: "Notebook" });
      },
    });
    // This category shows the icons of kernels, which are addresses.
    const kernelIconUrl = `data:image/svg+xml,${encodeURIComponent(ICON)}`;
    launcher?.add({ command: CREATE, category: "Notebook", rank: 10, kernelIconUrl });
  };
  return { id: "graphloupe:launcher", autoStart: true, optional: [ILauncher], activate };
}

/** The plugins; none where the page does not share the modules of JupyterLab. */
export async function modelPlugins(share: Share): Promise<object[]> {
  const modules = {
    widgets: await share("@lumino/widgets"),
    registry: await share("@jupyterlab/docregistry"),
    icons: await share("@jupyterlab/ui-components"),
    apputils: await share("@jupyterlab/apputils"),
    application: await share("@jupyterlab/application"),
    launcher: await share("@jupyterlab/launcher"),
  };
  if (!modules.widgets || !modules.registry || !modules.icons || !modules.apputils || !modules.application) return [];
  const complete = modules as unknown as Modules;
  return [opener(complete), ...(modules.launcher ? [tile(complete)] : [])];
}
