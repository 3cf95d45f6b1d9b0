// Memory over a step: how much is alive on a device at each moment, and which tensors that is.
import type { Window } from "./bars";
import type { StepTimeline } from "./generated";

/** The bytes that are alive on a lane from each time on, and the first moment of their peak. */
export interface Curve {
  readonly times: readonly number[];
  readonly bytes: readonly number[];
  readonly peak: number;
  readonly peakAt: number;
}

/** The tensors of one label that are alive at a moment. */
export interface Alive {
  readonly label: number;
  readonly lane: number;
  count: number;
  bytes: number;
  from: number;
  to: number;
}

/** The curve of each lane; null where nothing is alive at any time. */
export function curvesOf({ lanes, memory }: StepTimeline): (Curve | null)[] {
  const changes: [number, number][][] = lanes.map(() => []);
  for (const [i, lane] of memory.lanes.entries()) {
    const [start, size] = [memory.starts[i] ?? 0, memory.sizes[i] ?? 0];
    changes[lane]?.push([start, size], [start + (memory.lasting[i] ?? 0), -size]);
  }
  return changes.map((found) => (found.length > 0 ? curveOf(found) : null));
}

function curveOf(changes: [number, number][]): Curve {
  // A tensor is alive until its end, that moment included.
  changes.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const [times, bytes]: [number[], number[]] = [[0], [0]];
  let [held, peak, peakAt] = [0, 0, 0];
  for (const [time, change] of changes) {
    held += change;
    if (held > peak) [peak, peakAt] = [held, time];
    times.push(time);
    bytes.push(held);
  }
  return { times, bytes, peak, peakAt };
}

/** The tensors that are alive on a lane at a moment, the largest first. */
export function aliveAt({ memory }: StepTimeline, lane: number, time: number): Alive[] {
  const found = new Map<number, Alive>();
  for (const [i, start] of memory.starts.entries()) {
    const end = start + (memory.lasting[i] ?? 0);
    if (memory.lanes[i] !== lane || time < start || time > end) continue;
    const label = memory.labels[i] ?? 0;
    const alive = found.get(label) ?? { label, lane, count: 0, bytes: 0, from: start, to: end };
    alive.count += 1;
    alive.bytes += memory.sizes[i] ?? 0;
    alive.from = Math.min(alive.from, start);
    alive.to = Math.max(alive.to, end);
    found.set(label, alive);
  }
  return [...found.values()].sort((a, b) => b.bytes - a.bytes);
}

/** The most bytes that are alive in each pixel of a window, `width` pixels wide. */
export function columnsOf({ times, bytes }: Curve, { from, to }: Window, width: number): Float64Array {
  const most = new Float64Array(Math.ceil(width));
  const scale = width / Math.max(1, to - from);
  for (const [i, start] of times.entries()) {
    const end = times[i + 1] ?? start;
    if (end < from || start > to) continue;
    const first = Math.max(0, Math.floor((start - from) * scale));
    const last = Math.min(most.length - 1, Math.floor((end - from) * scale));
    for (let x = first; x <= last; x++) most[x] = Math.max(most[x] as number, bytes[i] as number);
  }
  return most;
}

/** The outline of an area with these heights, between 0 and `height` pixels for `peak` bytes, on a base line at `y`. */
export function areaPath(columns: Float64Array, peak: number, height: number, y: number): string {
  const parts = [`M0 ${y}`];
  let before = -1;
  for (const [x, count] of columns.entries()) {
    if (count === before) continue;
    const top = (y - (count / Math.max(1, peak)) * height).toFixed(1);
    parts.push(`H${x}V${top}`);
    before = count;
  }
  return `${parts.join("")}H${columns.length}V${y}Z`;
}
