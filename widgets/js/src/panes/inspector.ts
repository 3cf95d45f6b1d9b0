// The inspector: a pane with complete information on the selected box.

import { type Child, h, iconButton } from "../dom";
import { fullName, isKnown } from "../scene/boxes";
import type {
  Clash,
  FunctionInfo,
  GradientInfo,
  Inspection,
  SceneNode,
  SourceRow,
  TensorRow,
  Values,
  ValuesMessage,
  WhatIfMessage,
  Why,
  WhyStep,
} from "../scene/generated";
import type { Highlighted, Way } from "../scene/trace";
import { inWords, word } from "../scene/words";
import { ICONS } from "../style/icons";
import { codeFigure } from "./code";
import { type AskForValues, ValuesPane } from "./values";
import { type TryDevice, WhatIfPane } from "./what_if";

export interface InspectorActions {
  /** Moves to another box of the diagram. */
  goTo(id: string): void;
  /** Shows a function called by a box, in a picture of its own. */
  openFunction(id: string, place: number): void;
  close(): void;
  /** Shows what lies upstream or downstream of the selection, or no longer. */
  trace(way: Way): void;
  /** Shows what is near the selection, a step further each time. */
  neighborhood(): void;
  /** Shows the ways between the two selected boxes. */
  paths(): void;
  copy(text: string): void;
  readonly values: AskForValues;
  /** Predicts the effect of another device; undefined where there is no graph to place. */
  readonly tryDevice?: TryDevice | undefined;
  /** Shows a line of a cell in the notebook; undefined where there is no access to one. */
  readonly showLine?: ((cell: string, line: number) => void) | undefined;
}

/** Of more selected boxes only the first are listed. */
const MOST_LISTED = 40;

function section(title: string, ...children: Child[]): HTMLElement | null {
  const kept = children.filter(Boolean);
  return kept.length > 0 ? h("section", {}, h("h3", {}, word(title)), ...kept) : null;
}

/** Plain text with `code` between backquotes. */
function prose(text: string): Child[] {
  return text.split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

export class Inspector {
  readonly element = h("aside", { class: "gl-inspector", "aria-label": word("Inspector"), hidden: true });
  readonly #actions: InspectorActions;
  readonly #offline: boolean;
  #shown = "";
  #traced: Highlighted | null = null;
  /** The dimensions that the user wants explained, by what they are called. */
  readonly #opened = new Set<string>();
  readonly #values: ValuesPane;
  readonly #whatIf: WhatIfPane | null;

  /** `offline`: there is no kernel, so functions have no pictures of their own. */
  constructor(actions: InspectorActions, offline = false) {
    this.#offline = offline;
    this.#actions = actions;
    this.#values = new ValuesPane(actions.values);
    const parts = {
      steps: (steps: readonly WhyStep[]) => this.#steps(steps),
      source: (row: SourceRow | null) => this.#source(row),
      code: (text: string, title: string) => this.#code(text, title),
    };
    this.#whatIf = actions.tryDevice ? new WhatIfPane(actions.tryDevice, parts) : null;
  }

  /** The id of the inspected box; "" if the pane is closed. */
  get shown(): string {
    return this.#shown;
  }

  close(): void {
    this.#shown = "";
    this.element.hidden = true;
    this.element.replaceChildren();
  }

  /**
   * Shows a node or scope. `box` is its box in the picture, `reasons` are the constraints that join it with other boxes; `differs` is true
   * in the picture of a difference.
   */
  show(node: Inspection, box?: SceneNode, reasons: readonly string[] = [], differs = false): void {
    const scrolled = this.#shown === node.id ? this.element.scrollTop : 0;
    this.#shown = node.id;
    this.element.setAttribute("aria-busy", String(node.waits));
    const gradient = node.gradient && this.#gradient(node.gradient);
    const sections: Child[] = [
      this.#header(node),
      this.#error(node),
      differs && box && box.state !== "normal" ? section("Difference", differenceOf(box)) : null,
      node.waits
        ? h("p", { class: "gl-doc gl-waits" }, word("Explanations and values come when the kernel answers"))
        : null,
      gradient && section("Gradient", ...gradient),
      node.doc ? h("p", { class: "gl-doc" }, ...prose(node.doc)) : null,
      node.traits ? h("p", { class: "gl-doc gl-traits" }, node.traits) : null,
      ...node.functions.map((called) => this.#called(node.id, called)),
      section("Made by", this.#source(node.source)),
      section("Module", this.#attributes(node.modules)),
      section("Quantisation", this.#attributes(node.quantization)),
      node.values && section(node.kind === "variable" ? "Value" : "Values", this.#shownValues(node.name, node.values)),
      section("Values in the last recorded run", this.#attributes(node.recorded)),
      section("Numbers", this.#attributes(node.numbers)),
      section("Time in the last recorded run", this.#attributes(node.times)),
      section("Inputs", this.#tensors(node.inputs)),
      section("Outputs", this.#tensors(node.outputs)),
      section("Why this shape", ...node.why.map((why) => this.#why(why))),
      section("Control inputs", this.#tensors(node.control_inputs)),
      section("Control outputs", this.#tensors(node.control_outputs)),
      section("Attributes", this.#attributes(node.attrs)),
      section("In the source", this.#attributes(node.origin)),
      this.#device(node.device || (box?.lenses.devices?.text ?? "")),
      box?.together ? section("On one device", h("p", {}, box.together), this.#list(reasons)) : null,
      node.placement.length > 0 ? section("Why this device", this.#steps(node.placement)) : null,
      this.#offerDevices([node.id]),
      section("Contents", this.#contents(node.contents)),
      node.summary ? section("Summary", h("p", {}, ...prose(node.summary))) : null,
      node.signature ? section("Signature", this.#code(node.signature)) : null,
      node.node_def ? section("NodeDef", this.#code(node.node_def)) : null,
      node.registered_gradient && section("Registered gradient", ...this.#gradient(node.registered_gradient)),
    ];
    this.element.replaceChildren(...sections.filter((part) => part instanceof Node));
    this.element.hidden = false;
    this.element.scrollTop = scrolled;
  }

  /** Shows a page of the values of a node. */
  showValues({ name, values }: ValuesMessage): void {
    this.#values.receive(name, values);
  }

  /** Shows the effect of another device. */
  showWhatIf({ what_if: answer }: WhatIfMessage): void {
    this.#whatIf?.receive(answer);
  }

  #device(text: string): HTMLElement | null {
    return text ? section("Device", h("code", {}, text)) : null;
  }

  #list(lines: readonly string[]): HTMLElement | null {
    return lines.length > 0 ? h("ul", {}, ...lines.map((line) => h("li", {}, line))) : null;
  }

  #offerDevices(ids: readonly string[]): HTMLElement | null {
    this.#whatIf?.show(ids);
    return this.#whatIf && h("section", {}, this.#whatIf.element);
  }

  #shownValues(name: string, values: Values): HTMLElement {
    this.#values.show(name, values);
    return this.#values.element;
  }

  /** Tells about several boxes at once. */
  showMany(boxes: readonly SceneNode[]): void {
    this.#shown = "";
    const ops = new Map<string, number>();
    for (const { op, kind } of boxes) ops.set(op || kind, (ops.get(op || kind) ?? 0) + 1);
    const contents = [...ops].sort((a, b) => b[1] - a[1]);
    const nodes = boxes.reduce((sum, { count }) => sum + count, 0);
    const cells = [...new Set(boxes.map(({ cell }) => cell).filter(Boolean))];
    const wrong = boxes.filter(({ state }) => state === "error").length;
    const links = boxes.slice(0, MOST_LISTED).map((box) => h("li", {}, this.#link(fullName(box), box.id)));
    const more = boxes.length - links.length;
    const sections = [
      this.#headerOf(
        "selection",
        word("{count} boxes", { count: boxes.length.toLocaleString("en") }),
        word("{count} nodes", { count: nodes.toLocaleString("en") }),
        "",
        boxes.length,
      ),
      wrong ? section("Errors", h("p", {}, word("{count} of them with errors", { count: wrong }))) : null,
      section("Contents", this.#contents(contents)),
      cells.length > 0 ? section("Made by", h("p", {}, cells.join(", "))) : null,
      this.#offerDevices(boxes.map(({ id }) => id)),
      section(
        "Boxes",
        h("ul", {}, ...links),
        more > 0 ? h("p", { class: "gl-note" }, word("and {count} more", { count: more })) : null,
      ),
    ];
    this.element.replaceChildren(...sections.filter((part) => part !== null));
    this.element.hidden = false;
  }

  /** Marks the button of what is highlighted now. */
  traced(way: Highlighted | null): void {
    this.#traced = way;
    for (const button of this.element.querySelectorAll<HTMLElement>("[data-way]"))
      button.setAttribute("aria-pressed", String(button.dataset.way === way));
  }

  /** The buttons that highlight what is around `count` selected boxes. */
  #ways(count: number): HTMLElement {
    const button = (way: Highlighted, label: string, title: string, click: () => void): HTMLElement =>
      h(
        "button",
        {
          type: "button",
          class: "gl-text-button",
          "data-way": way,
          "aria-pressed": String(this.#traced === way),
          title: word(title),
          click,
        },
        word(label),
      );
    const { trace, neighborhood, paths } = this.#actions;
    return h(
      "div",
      { class: "gl-ways" },
      button("upstream", "Upstream", "Highlight everything upstream (u)", () => trace("upstream")),
      button("downstream", "Downstream", "Highlight everything downstream (d)", () => trace("downstream")),
      button("near", "Neighborhood", "Highlight what is near, a step further each time (n)", neighborhood),
      count === 2 ? button("paths", "Ways between", "Highlight the ways between the two (p)", paths) : null,
    );
  }

  #header(node: Inspection): HTMLElement {
    const kind = node.gradient ? `${word(node.kind)} · ${word("gradient")}` : node.kind;
    return this.#headerOf(kind, node.op || node.name, node.name, node.gradient ? "gl-is-gradient" : "");
  }

  #headerOf(kind: string, title: string, name: string, style = "", count = 1): HTMLElement {
    return h(
      "header",
      { class: style },
      h(
        "div",
        {},
        h("span", { class: "gl-kind" }, word(kind)),
        h("h2", {}, title),
        h("p", { class: "gl-name" }, name),
        this.#ways(count),
      ),
      iconButton(ICONS.close, "Close the inspector (Esc)", () => this.#actions.close()),
    );
  }

  #error(node: Inspection): HTMLElement | null {
    if (!node.error && node.clashes.length === 0) return null;
    return h(
      "section",
      { class: "gl-error-box", role: "alert" },
      h("h3", {}, word("Error")),
      node.error ? h("p", { class: "gl-error-text" }, node.error) : null,
      node.clashes.length > 0 && node.chains.length === 0 ? this.#clashes(node.clashes) : null,
      ...node.chains.map((chain) => this.#chain(chain)),
    );
  }

  /** The path of one of two clashing sizes, back to its origin in the code. */
  #chain(chain: Why): HTMLElement {
    const title = h("p", { class: "gl-why-head" }, h("code", {}, chain.size), ` is ${chain.what}`.replaceAll("`", ""));
    return h("div", { class: "gl-chain-text" }, title, this.#steps(chain.steps));
  }

  #why(why: Why): HTMLElement {
    const unknown = isKnown(why.size) ? "" : "gl-unknown";
    const size = h("code", { class: `gl-dim ${unknown}`, "data-dim": why.key || null }, why.size);
    const details = h(
      "details",
      { class: "gl-why", open: this.#opened.has(why.what) },
      h("summary", { "data-dim": why.key || null }, `${why.what} = `, size),
      this.#steps(why.steps),
    );
    details.addEventListener("toggle", () => {
      if (details.open) this.#opened.add(why.what);
      else this.#opened.delete(why.what);
    });
    return details;
  }

  #steps(steps: readonly WhyStep[]): HTMLElement {
    const rows = steps.map((step) =>
      h(
        "li",
        { style: `--gl-level:${step.depth}` },
        h("span", {}, ...prose(step.text)),
        step.name && step.name !== this.#shown
          ? h("span", { class: "gl-at" }, " at ", this.#link(step.name, step.node))
          : null,
        this.#source(step.source),
      ),
    );
    return h("ol", { class: "gl-steps" }, ...rows);
  }

  #clashes(clashes: readonly Clash[]): HTMLElement {
    const head = h("tr", {}, h("th", {}, word("Tensor")), h("th", {}, word("Shape")), h("th", {}, word("Made by")));
    const rows = clashes.map((clash) =>
      h(
        "tr",
        {},
        h("td", {}, h("code", {}, clash.tensor)),
        h("td", {}, h("code", {}, clash.shape)),
        h("td", {}, this.#source(clash.source)),
      ),
    );
    return h("table", { class: "gl-clashes" }, h("thead", {}, head), h("tbody", {}, ...rows));
  }

  /** A called function: its name, its definition, and its body with the types of this call. */
  #called(id: string, called: FunctionInfo): HTMLElement | null {
    const kind = called.label ? `${word("Function")} · ${called.label}` : word("Function");
    return section(
      kind,
      h("p", {}, h("code", {}, called.attrs ? `${called.name}[${called.attrs}]` : called.name)),
      called.note ? h("p", { class: "gl-note" }, called.note) : null,
      called.opens && !this.#offline ? this.#opener(id, called) : null,
      called.definition
        ? this.#code(called.definition, word(called.derived ? "Derived by differentiating" : "Definition"))
        : null,
      called.instantiated ? this.#code(called.instantiated, word("Body of this call")) : null,
    );
  }

  #opener(id: string, called: FunctionInfo): HTMLElement {
    const press = (): void => this.#actions.openFunction(id, called.place);
    return h(
      "button",
      { type: "button", class: "gl-text-button", "data-open-function": called.name, click: press },
      word("Open function"),
    );
  }

  #gradient(info: GradientInfo): Child[] {
    const forward = info.differentiates
      ? h(
          "p",
          {},
          `${word("differentiates")} `,
          this.#link(info.differentiates, info.differentiates_id),
          info.body_node ? ` ${word("as its node {node}", { node: info.body_node })}` : "",
        )
      : null;
    return [
      forward,
      info.function
        ? h("p", {}, `${word("by the registered gradient function")} `, h("code", {}, info.function))
        : null,
      info.definition ? this.#code(info.definition, word("Registered gradient function")) : null,
      info.instantiated ? this.#code(info.instantiated, word("Instantiated body")) : null,
      info.built ? this.#code(info.built, word("What of it is in this graph")) : null,
    ];
  }

  #tensors(rows: readonly TensorRow[]): HTMLElement | null {
    if (rows.length === 0) return null;
    const items = rows.map((row) =>
      h(
        "li",
        { class: row.error ? "gl-tensor gl-bad" : "gl-tensor" },
        row.name ? h("span", { class: "gl-arg" }, row.name) : null,
        row.dtype || row.shape
          ? h("span", { class: "gl-type" }, [row.dtype, row.shape].filter(Boolean).join(" "))
          : null,
        row.tensor || row.node ? this.#link(row.tensor || row.node, row.node) : null,
        row.note ? h("span", { class: "gl-note" }, inWords(row.note)) : null,
        row.error ? h("span", { class: "gl-error-text" }, row.error) : null,
      ),
    );
    return h("ul", { class: "gl-tensors" }, ...items);
  }

  #attributes(attrs: Inspection["attrs"]): HTMLElement | null {
    if (attrs.length === 0) return null;
    return h("dl", {}, ...attrs.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  }

  #contents(contents: Inspection["contents"]): HTMLElement | null {
    if (contents.length === 0) return null;
    return h(
      "ul",
      { class: "gl-contents" },
      ...contents.map(([op, count]) => h("li", {}, h("code", {}, op), ` × ${count}`)),
    );
  }

  /** The line that made something: a link to its cell where there is access to the notebook. */
  #source(row: SourceRow | null): HTMLElement | null {
    if (!row) return null;
    const place = [
      row.cell || row.file || word("unknown place"),
      row.line ? word("line {number}", { number: row.line }) : "",
    ]
      .filter(Boolean)
      .join(", ");
    const { showLine } = this.#actions;
    const press = (): void => showLine?.(row.cell_id, row.line);
    return h(
      "div",
      { class: "gl-source" },
      showLine && row.cell_id
        ? h("button", { type: "button", class: "gl-link gl-place", title: word("Show this line"), click: press }, place)
        : h("span", { class: "gl-place" }, place),
      row.text ? h("code", {}, row.text.trim()) : null,
    );
  }

  #link(text: string, id: string): HTMLElement {
    if (!id) return h("span", { class: "gl-far" }, text);
    return h("button", { type: "button", class: "gl-link", click: () => this.#actions.goTo(id) }, text);
  }

  #code(text: string, title = ""): HTMLElement {
    return codeFigure(text, title, (copied) => this.#actions.copy(copied));
  }
}

/** The difference of a box in words: each change of a changed one. */
function differenceOf({ state, detail }: SceneNode): HTMLElement {
  const changes = state === "changed" && detail ? detail.split("; ") : [state];
  return h("ul", { class: "gl-changes" }, ...changes.map((change) => h("li", {}, change)));
}
