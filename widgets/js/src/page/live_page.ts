// A picture of a graph that lives in a kernel: compiled here, explained there.
import type {
  ChangeMessage,
  ExplanationMessage,
  FromViewer,
  GraphChange,
  NamesMessage,
  PictureMessage,
  SceneMessage,
  StepsMessage,
  TimelinesMessage,
  WhatIfMessage,
} from "../scene/generated";
import { lit } from "../scene/query";
import type { PageData } from "./data";
import { GraphPage } from "./graph_page";
import { KeptData } from "./kept";

/** The messages of a kernel that name nodes, and get their places here. */
export type Told = ExplanationMessage | NamesMessage | StepsMessage | TimelinesMessage | WhatIfMessage;

/** A request that goes on to the kernel. */
export interface Ask {
  readonly type: "ask";
  readonly request: FromViewer;
}

export class LivePage {
  readonly #kept = new KeptData();
  #page: GraphPage | null = null;
  #data: PageData | null = null;
  #revision = 0;
  /** The end of the cell of the last change. */
  #sentAt = 0;
  /** The picture of the last change, as text. */
  #scene = "";
  /** The most boxes that open automatically, 0 for the usual number. */
  #boxes = 0;

  /** The picture of a changed graph, in which the same is open unless the kernel has chosen. */
  change(change: GraphChange, message: ChangeMessage): SceneMessage | Ask {
    const before = change.whole ? this.#scene : "";
    const data = this.#kept.apply(change, message);
    if (!data) return { type: "ask", request: { type: "want_whole" } };
    const choices = message.choices ?? this.#page?.choices;
    if (!choices) return { type: "ask", request: { type: "want_whole" } };
    const beginning = { title: message.title, ...choices };
    if (this.#page && data === this.#data) this.#page.begin(beginning);
    else this.#page = new GraphPage(data, beginning);
    this.#data = data;
    if (this.#boxes > 0) this.#page.answer({ type: "crowded", boxes: this.#boxes });
    this.#sentAt = message.sent_at;
    const { focus: name } = message;
    const shown = name ? this.#page.answer({ type: "reveal", name, quiet: false }) : null;
    const scene = shown?.type === "scene" ? shown : (this.#page.answer({ type: "ready" }) as SceneMessage);
    const found = { ...scene, sent_at: message.sent_at, look: message.look };
    this.#scene = JSON.stringify(scene.scene);
    // The whole graph also comes for the sake of another view of it that has just begun.
    return this.#scene === before ? this.#again(found) : this.#numbered(found);
  }

  /** The answers to a request of the viewer. */
  answer(request: FromViewer): readonly (PictureMessage | Ask)[] {
    const page = this.#page;
    if (!page) return [];
    if (request.type === "try_device") {
      const { ids, device, apply } = request;
      return [{ type: "ask", request: { type: "request_device", ids, names: page.namesIn(ids), device, apply } }];
    }
    if (request.type === "crowded") this.#boxes = request.boxes;
    const answer = page.answer(request) ?? (request.type === "renderer" ? page.answer({ type: "ready" }) : null);
    if (answer?.type === "scene") return [request.type === "crowded" ? this.#again(answer) : this.#numbered(answer)];
    if (answer?.type !== "inspection") return answer ? [answer] : [];
    return [{ ...answer, inspection: { ...answer.inspection, waits: answer.inspection.op !== "" } }];
  }

  #numbered(message: SceneMessage): SceneMessage {
    this.#revision += 1;
    return { ...message, scene: { ...message.scene, revision: this.#revision } };
  }

  /** The same picture in another form: it has the number and the time of the one that it replaces. */
  #again(message: SceneMessage): SceneMessage {
    return { ...message, scene: { ...message.scene, revision: this.#revision }, sent_at: this.#sentAt };
  }

  /** A message of the kernel, with places. */
  place(told: Told): PictureMessage | null {
    const page = this.#page;
    if (!page) return null;
    switch (told.type) {
      case "explanation": {
        const inspection = page.explained(told.id, told.explanation);
        return inspection && { type: "inspection", inspection };
      }
      case "names": {
        const boxes = page.boxesOf(told.names);
        return lit(
          told.names.map((name) => boxes[name] ?? ""),
          told.what,
        );
      }
      case "what_if": {
        const { effect } = told.what_if;
        if (!effect) return told;
        const placed = { ...effect, conflict: page.placed(effect.conflict), moved: page.placed(effect.moved) };
        return { ...told, what_if: { ...told.what_if, effect: placed } };
      }
      case "timelines":
        return this.#withTimelines(page, told);
      case "steps":
        return this.#withSteps(page, told);
    }
  }

  /** The nodes that the timelines and the steps of the viewer name: the kernel sends them once. */
  #timed: readonly string[] = [];
  #stepped: readonly string[] = [];

  #withTimelines(page: GraphPage, told: TimelinesMessage): TimelinesMessage {
    if (told.timelines) this.#timed = [...new Set(told.timelines.flatMap(({ nodes }) => nodes))];
    return { ...told, boxes: page.boxesOf(this.#timed) };
  }

  #withSteps(page: GraphPage, told: StepsMessage): StepsMessage {
    if (told.steps) this.#stepped = told.steps.nodes;
    const waiting = told.live ? [told.live.next, ...told.live.waiting.map(([, name]) => name)] : [];
    return { ...told, boxes: page.boxesOf([...this.#stepped, ...waiting.filter(Boolean)]) };
  }
}
