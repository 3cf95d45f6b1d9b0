// One of two pictures side by side: what the user does in it is done in the other one as well.
import type { View } from "../canvas/camera";
import type { Stage } from "../canvas/stage";
import type { FromViewer } from "../scene/generated";
import type { Choice } from "./choice";
import type { Host } from "./host";

/** The names that nodes and scopes have in the other picture, where they have others; "" for none. Scopes end in a slash. */
export type Twins = Readonly<Record<string, string>>;

/** The parts of a viewer that the picture beside it moves. */
interface Parts {
  readonly stage: Stage;
  readonly choice: Choice;
}

/** A group that a picture makes is named by the scope around it, a number, and its first node or scope. */
const GROUP = /^(.*?\/)?(#\d+\.)(.*)$/;

export class Side {
  /** The host for the viewer. */
  readonly host: Host;
  readonly #own: Host;
  #twins: ReadonlyMap<string, string>;
  #other: Side | null = null;
  #parts: Parts | null = null;
  /** True for the picture that the user works in. */
  #leads = false;

  constructor(host: Host, twins: Twins) {
    this.#own = host;
    this.#twins = new Map(Object.entries(twins));
    this.host = {
      notebook: host.notebook,
      notebookPath: host.notebookPath,
      isAlone: (message) => host.isAlone?.(message) ?? false,
      onMessage: (callback) => host.onMessage(callback),
      send: (message, handled) => {
        host.send(message, handled);
        if (this.#leads) this.#repeat(message);
      },
    };
  }

  /** Ties two pictures to each other. */
  static tie(first: Side, second: Side): void {
    first.#other = second;
    second.#other = first;
  }

  /** The pictures are those of other states from now on. */
  rename(twins: Twins): void {
    this.#twins = new Map(Object.entries(twins));
  }

  /** The viewer is there: from now on it follows, and is followed. */
  attach(parts: Parts): void {
    this.#parts = parts;
    const { camera } = parts.stage;
    const lead = (work: (follower: Side) => void): void => {
      if (this.#leads && this.#other) work(this.#other);
    };
    camera.steered = (from, to) => lead((follower) => follower.#steer(from, to));
    parts.choice.marking = (ids) => lead((follower) => follower.#mark(this.#twinsOf(ids)));
    parts.stage.fitted = () => lead((follower) => follower.#fit());
  }

  /** The user works in this picture from now on. */
  lead(): void {
    this.#leads = true;
    if (this.#other) this.#other.#leads = false;
  }

  /** The id of the same box or frame in the other picture; "" if there is none. */
  twin(id: string): string {
    const whole = this.#twins.get(id);
    if (whole !== undefined) return whole;
    const group = GROUP.exec(id.endsWith("/") ? id.slice(0, -1) : id);
    if (!group) return id;
    const [, around = "", number = "", first = ""] = group;
    const [scope, inner] = [this.#name(around), this.#name(around + first)];
    const slash = id.endsWith("/") ? "/" : "";
    return `${scope}${number}${inner.startsWith(scope) ? inner.slice(scope.length) : first}${slash}`;
  }

  #twinsOf(ids: ReadonlySet<string>): readonly string[] {
    return [...ids].map((id) => this.twin(id)).filter((id) => id !== "");
  }

  /** The other name of a node, or of a scope without its slash. */
  #name(name: string): string {
    return this.#twins.get(name) || (this.#twins.get(`${name}/`) ?? "").replace(/\/$/, "") || name;
  }

  /** Does in the other picture what opens or closes something in this one. */
  #repeat(message: FromViewer): void {
    if (!this.#other) return;
    const other = this.#other.#own;
    switch (message.type) {
      case "expand":
      case "collapse": {
        const id = this.twin(message.id);
        if (id) other.send({ ...message, id });
        return;
      }
      case "restore": {
        const keys = (all: readonly string[]): string[] => all.map((key) => this.#key(key)).filter((key) => key !== "");
        const { openings } = message;
        const [opened, closed] = [keys(openings.opened), keys(openings.closed)];
        return other.send({ type: "restore", openings: { ...openings, opened, closed } });
      }
    }
  }

  /** The key of the same part in the other picture: scopes have no slash there. */
  #key(key: string): string {
    const scope = this.#twins.get(`${key}/`);
    return scope === undefined ? this.twin(key) : scope.replace(/\/$/, "");
  }

  #fit(): void {
    if (this.#parts) this.#parts.stage.fit();
  }

  #mark(ids: readonly string[]): void {
    if (!this.#parts) return;
    const { stage, choice } = this.#parts;
    choice.closeInspector(); // it would leave this picture less room than the other one
    choice.mark(new Set(ids));
    const id = ids.at(-1) ?? "";
    const rect = stage.rectOf(id);
    if (rect) stage.camera.ensureVisible(rect);
    else if (id && !id.endsWith("/")) this.#own.send({ type: "reveal", name: id, quiet: true });
  }

  /** Moves the window as that of the other picture has moved, on the screen. */
  #steer(from: View, to: View): void {
    const camera = this.#parts?.stage.camera;
    if (!camera) return;
    const { x, y, scale } = camera.view;
    const by = to.scale / from.scale;
    camera.show({ x: by * x + to.x - by * from.x, y: by * y + to.y - by * from.y, scale: by * scale });
  }
}
