// Short names of devices for tags: only what tells the devices of a picture apart.

const NAME = /\/[^\s,;()]*device:([^\s,;()]+)/g;
const PARTS = ["job", "replica", "task"] as const;

const partOf = (name: string, part: string): string => new RegExp(`/${part}:([^/]+)/`).exec(name)?.[1] ?? "";

/** Shortens the names of devices in a text, whole in the legend: `task 1 GPU:0` if they are of several tasks, else `GPU:0`. `texts` have all names. */
export function deviceShortener(texts: Iterable<string>): (text: string) => string {
  const names = new Set([...texts].flatMap((text) => text.match(NAME) ?? []));
  const varying = PARTS.filter(
    (part) => new Set([...names].map((name) => partOf(name, part)).filter(Boolean)).size > 1,
  );
  return (text) =>
    text
      .replaceAll(" (simulated)", " sim.")
      .replaceAll("sharded P(", "P(")
      .replace(NAME, (name, device: string) => {
        const parts = varying.map((part) => {
          const value = partOf(name, part);
          return value && part !== "job" ? `${part} ${value}` : value;
        });
        return [...parts, device].filter(Boolean).join(" ");
      });
}
