// The notebook around a view, through the widget manager of JupyterLab and Notebook 7. Other hosts give no access to it.

interface Signal<Value> {
  connect(slot: (sender: unknown, value: Value) => void): void;
  disconnect(slot: (sender: unknown, value: Value) => void): void;
}

interface Kernel {
  readonly status: string;
  requestExecute(content: { code: string; silent: boolean; store_history: boolean }): {
    readonly done: Promise<unknown>;
  };
}

interface SessionContext {
  readonly statusChanged: Signal<string>;
  readonly kernelChanged: Signal<unknown>;
  readonly session: { readonly kernel: Kernel | null } | null;
  restartKernel(): Promise<void>;
}

/** The document of a notebook; all its widgets share one. */
interface Context {
  readonly sessionContext: SessionContext;
}

/** The part of a widget manager that is used here; `context` is there in a notebook only. */
export interface Manager {
  get_model(id: string): Promise<unknown>;
  readonly context?: Context;
}

interface Editor {
  readonly lineCount: number;
  getLine(line: number): string | undefined;
  setSelection(range: Range): void;
  revealSelection(range: Range): void;
  focus(): void;
}

interface Range {
  readonly start: { readonly line: number; readonly column: number };
  readonly end: { readonly line: number; readonly column: number };
}

interface Cell {
  readonly model: { readonly id: string };
  readonly ready: Promise<void>;
  readonly editor: Editor | null;
}

type Execute = (
  cell: Cell,
  session: SessionContext,
) => Promise<{ readonly content: { readonly status: string } } | undefined>;

/** Any Lumino widget of JupyterLab; `widgets` is a method of the main area. */
interface Lumino {
  readonly parent: Lumino | null;
  readonly widgets?: unknown;
  activateWidget?(widget: Lumino): void;
}

interface NotebookPanel extends Lumino {
  readonly context: Context;
  readonly content: {
    readonly widgets: readonly Cell[];
    activeCellIndex: number;
    mode: "command" | "edit";
    deselectAll(): void;
    scrollToItem(index: number, align: "center"): Promise<void>;
  };
}

const ENDS: ReadonlySet<string> = new Set(["autorestarting", "dead", "restarting", "terminating"]);

export class Notebook {
  readonly #manager: Manager;
  readonly #model: string;
  readonly #cell: string;
  #panel: Promise<NotebookPanel | null> | undefined;

  /** `model` is the id of the view's own model, `cell` that of the cell that made the view, both "" if unknown. */
  constructor(manager: Manager, model: string, cell: string) {
    this.#manager = manager;
    this.#model = model;
    this.#cell = cell;
  }

  /** Calls `ended` when the kernel restarts, dies or is replaced. Returns a function that stops this. */
  onEnd(ended: () => void): () => void {
    const session = this.#manager.context?.sessionContext;
    if (!session) return () => undefined;
    // Sought now, while the view's model is known: it is not if its comm is lost.
    void this.#find();
    const look = (_sender: unknown, status: string): void => {
      if (ENDS.has(status)) ended();
    };
    const replaced = (): void => ended();
    session.statusChanged.connect(look);
    session.kernelChanged.connect(replaced);
    return () => {
      session.statusChanged.disconnect(look);
      session.kernelChanged.disconnect(replaced);
    };
  }

  /** True if the page gives access to the notebook. */
  get isKnown(): boolean {
    return this.#manager.context !== undefined;
  }

  /** Shows a cell and selects a line in it, counted from 1. False if the cell is not in the notebook. */
  async showLine(id: string, line: number): Promise<boolean> {
    const panel = await this.#find();
    const index = panel?.content.widgets.findIndex(({ model }) => model.id === id) ?? -1;
    const cell = panel?.content.widgets[index];
    if (!panel || !cell) return false;
    panel.parent?.activateWidget?.(panel);
    panel.content.activeCellIndex = index;
    panel.content.deselectAll();
    await panel.content.scrollToItem(index, "center");
    await cell.ready;
    const { editor } = cell;
    if (!editor) return true;
    panel.content.mode = "edit";
    const row = Math.max(Math.min(line, editor.lineCount) - 1, 0);
    const range = { start: { line: row, column: 0 }, end: { line: row, column: editor.getLine(row)?.length ?? 0 } };
    editor.focus();
    editor.setSelection(range);
    editor.revealSelection(range);
    return true;
  }

  /** Runs the cell that made the view again, with a new kernel if need be. False if it fails or is gone. */
  async runCell(): Promise<boolean> {
    const panel = await this.#find();
    const cell = panel?.content.widgets.find(({ model }) => model.id === this.#cell);
    const session = this.#manager.context?.sessionContext;
    const execute = (cell?.constructor as { execute?: Execute } | undefined)?.execute;
    if (!cell || !session || !execute) return false;
    if (session.session?.kernel?.status === "dead") await session.restartKernel();
    await session.session?.kernel?.requestExecute({ code: "%load_ext kernelext", silent: true, store_history: false })
      .done;
    return (await execute(cell, session))?.content.status === "ok";
  }

  #find(): Promise<NotebookPanel | null> {
    this.#panel ??= this.#seek().catch(() => null);
    return this.#panel;
  }

  /** Walks from the view's widget towards the shell: the notebook is around the view, or beside its panel. */
  async #seek(): Promise<NotebookPanel | null> {
    const { views } = (await this.#manager.get_model(this.#model)) as {
      views?: Readonly<Record<string, Promise<{ readonly luminoWidget?: Lumino }>>>;
    };
    for (const view of Object.values(views ?? {})) {
      let widget = (await view).luminoWidget ?? null;
      for (; widget; widget = widget.parent) {
        const found = [widget, ...widgetsIn(widget)].find((other) => this.#isPanel(other));
        if (found) return found as NotebookPanel;
      }
    }
    return null;
  }

  #isPanel(widget: Partial<NotebookPanel>): boolean {
    return widget.context !== undefined && widget.context === this.#manager.context && widget.content !== undefined;
  }
}

function widgetsIn(widget: Lumino): readonly Lumino[] {
  if (typeof widget.widgets !== "function") return [];
  return [...(widget.widgets("main") as Iterable<Lumino>)];
}
