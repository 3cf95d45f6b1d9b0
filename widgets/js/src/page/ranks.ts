// Estimates of the layer of each box.

type Arrow = readonly [string, string];

/** The layer of each box: 0 at the top; every arrow outside of cycles points to a deeper layer. */
export function estimateRanks(
  boxes: readonly string[],
  arrows: readonly Arrow[],
  loose: readonly Arrow[],
): Map<string, number> {
  const after = new Map<string, string[]>(boxes.map((box) => [box, []]));
  for (const [source, target] of arrows) if (source !== target) after.get(source)?.push(target);
  const order = topological(boxes, after);
  const place = new Map(order.map((box, i) => [box, i]));
  const placeOf = (box: string): number => place.get(box) ?? 0;
  const below = new Map(boxes.map((box) => [box, (after.get(box) ?? []).filter((to) => placeOf(to) > placeOf(box))]));
  const pull = new Map([...below].map(([box, targets]) => [box, targets.length]));
  const ranks = new Map(boxes.map((box) => [box, 0]));
  const rank = (box: string): number => ranks.get(box) ?? 0;
  const bound = new Set([...below].filter(([, targets]) => targets.length > 0).map(([box]) => box));
  for (const box of order)
    for (const target of below.get(box) ?? []) {
      ranks.set(target, Math.max(rank(target), rank(box) + 1));
      pull.set(target, (pull.get(target) ?? 0) - 1);
      bound.add(target);
    }
  for (const box of [...order].reverse()) {
    const targets = below.get(box) ?? [];
    if (targets.length > 0 && (pull.get(box) ?? 0) >= 0) ranks.set(box, Math.min(...targets.map(rank)) - 1);
  }
  for (const [source, target] of loose)
    if (!bound.has(target)) ranks.set(target, Math.max(rank(target), rank(source) + 1));
  return ranks;
}

/** Reverse post-order of a depth-first walk: topological except for the arrows that close cycles. */
function topological(boxes: readonly string[], after: ReadonlyMap<string, readonly string[]>): string[] {
  const done: string[] = [];
  const seen = new Set<string>();
  for (const start of boxes) {
    if (seen.has(start)) continue;
    seen.add(start);
    const stack: [string, Iterator<string>][] = [[start, (after.get(start) ?? []).values()]];
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const [box, targets] = top;
      let next = targets.next();
      while (!next.done && seen.has(next.value)) next = targets.next();
      if (next.done) {
        done.push(box);
        stack.pop();
        continue;
      }
      seen.add(next.value);
      stack.push([next.value, (after.get(next.value) ?? []).values()]);
    }
  }
  return done.reverse();
}
