// The keys of the viewer: one table handles them and is the list that `?` shows.

export interface Shortcut {
  /** The values of `KeyboardEvent.key`. */
  readonly keys: readonly string[];
  /** Keys that must be held; Shift is free where the key itself needs it. */
  readonly held?: "Shift" | "Ctrl" | "Alt";
  /** The text of the keys in the list, if it differs from their values. */
  readonly shown?: string;
  readonly says: string;
  /** Only while the focus is on the picture: elsewhere the key has another meaning. */
  readonly onPicture?: boolean;
  run(key: string): void;
}

function holds({ ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent, { held, keys }: Shortcut): boolean {
  const letter = keys.some((key) => key.length === 1 && key !== " ");
  const shift = letter || shiftKey === (held === "Shift");
  return shift && (ctrlKey || metaKey) === (held === "Ctrl") && altKey === (held === "Alt");
}

/** The shortcut that an event calls for. */
export function shortcutOf(table: readonly Shortcut[], event: KeyboardEvent, onPicture: boolean): Shortcut | undefined {
  return table.find(
    (shortcut) => shortcut.keys.includes(event.key) && (onPicture || !shortcut.onPicture) && holds(event, shortcut),
  );
}

const NAMES: Readonly<Record<string, string>> = {
  " ": "Space",
  Escape: "Esc",
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
};

/** The keys of a shortcut as text: `Shift + ↑`. */
export function keyNames({ keys, held, shown }: Shortcut): readonly string[] {
  const names = shown ? [shown] : keys.map((key) => NAMES[key] ?? key);
  return names.map((name) => (held ? `${held} + ${name}` : name));
}
