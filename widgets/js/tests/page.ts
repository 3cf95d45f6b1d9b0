// What jsdom lacks of a browser page, as far as the viewer asks for it.

class NoResizes implements ResizeObserver {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

globalThis.ResizeObserver = NoResizes;

/** The canvas has a size, so that the camera has something to fit into. */
for (const [name, size] of [
  ["clientWidth", 800],
  ["clientHeight", 600],
] as const) {
  Object.defineProperty(HTMLElement.prototype, name, { configurable: true, get: () => size });
}
