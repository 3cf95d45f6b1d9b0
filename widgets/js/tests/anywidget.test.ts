import { expect, test, vi } from "vitest";
import widget from "../src/shell/anywidget";

test("callbacks of messages can be read, as ipywidgets does, and called, as marimo does", async () => {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe(): void {}
      disconnect(): void {}
    },
  );
  const send = vi.fn();
  const traits: Record<string, unknown> = { home: { notebook: "", kernel: "" }, title: "g", panel: "", kind: "graph" };
  const model = { send, on: vi.fn(), off: vi.fn(), get: (name: string) => traits[name] };
  const el = document.createElement("div");
  document.body.append(el);
  const end = widget.render({ model, el } as unknown as Parameters<typeof widget.render>[0]);
  await vi.waitFor(() => expect(send).toHaveBeenCalled());
  const [message, callbacks] = send.mock.calls[0] ?? [];
  expect(message).toEqual({ type: "need_engine", engine: "core" });
  expect(() => callbacks()).not.toThrow();
  expect(callbacks.iopub.status).toBeTypeOf("function");
  end();
});
