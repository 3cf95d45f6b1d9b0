// Devices of nodes, and the copies between them on edges.
import type { LensMark } from "../scene/generated";
import { counted } from "./order";
import type { Instance } from "./parts";
import { ELSEWHERE, type Space } from "./space";
import type { Tensor } from "./visible";

/** The tone of edges that cross devices. */
const COPY_TONE = 6;
/** A tensor that is split over devices may be taken piece by piece: its lines name no copies. */
const SHARDING = /^(sharded |replicated$)/;
const UNITS = [
  ["GB", 1e9],
  ["MB", 1e6],
  ["kB", 1e3],
] as const;
/** Rounds as Python does. */
const TENTHS = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
  roundingMode: "halfEven",
  useGrouping: false,
});

/** The assigned device of a node; else the one it requests, else "". */
export function deviceOf({ space }: Instance, node: number): string {
  return deviceIn(space, node);
}

/** The devices of all nodes of a graph, in the order of the nodes. */
export function devicesOf(space: Space): string[] {
  const found = new Set<string>();
  for (let node = 0; node < space.size; node++) found.add(deviceIn(space, node));
  return [...found];
}

function deviceIn(space: Space, node: number): string {
  const requested = space.text("requests", node);
  return space.text("devices", node) || (requested && `requested ${requested}`);
}

/** The device of a node, and its request if it is on another one. */
export function deviceWords(instance: Instance, node: number): string {
  const { space } = instance;
  const device = deviceOf(instance, node);
  return space.has(node, ELSEWHERE) ? `${device} (requested ${space.text("requests", node)})` : device;
}

/** The device that a tensor is copied to for a node; "" if it stays where it is. */
export function copiedTo({ instance, node: source }: Tensor, target: Instance, node: number): string {
  const from = source < 0 ? "" : instance.space.text("devices", source);
  const to = target.space.text("devices", node);
  return from && from !== to && !SHARDING.test(from) && !SHARDING.test(to) ? to : "";
}

/** The mark of an edge with tensors that are copied. */
export function copiesMark(copies: Iterable<Tensor>): LensMark {
  const sizes = [...copies].map(({ info }) => info.bytes);
  const known = sizes.filter((size) => size !== null);
  const sum = byteCount(known.reduce((all, size) => all + size, 0));
  const size = known.length === 0 ? "size unknown" : known.length < sizes.length ? `over ${sum}` : sum;
  return { text: sizes.length > 1 ? `${sizes.length} copies, ${size}` : size, tone: COPY_TONE };
}

/** `12 bytes`, `3.1 kB`. */
export function byteCount(count: number): string {
  const [unit, size] = UNITS.find(([, least]) => count >= least) ?? ["", 0];
  return unit ? `${TENTHS.format(count / size)} ${unit}` : counted(count, "byte");
}
