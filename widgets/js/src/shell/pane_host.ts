// The hosts of two pictures in one view: those of a function, or of both states of a difference.
import type { FromViewer, Pane, PictureRequest } from "../scene/generated";
import type { Host } from "./host";

/** The messages that are none of a picture's own, which are sent unwrapped. */
export type Unwrapped = Exclude<FromViewer, PictureRequest>;

const UNWRAPPED: ReadonlySet<FromViewer["type"]> = new Set<Unwrapped["type"]>([
  "need_engine",
  "to_pane",
  "set_attr",
  "choose_use",
  "differentiate",
  "back",
  "want_states",
]);

const isUnwrapped = (message: FromViewer): message is Unwrapped => UNWRAPPED.has(message.type);

/** The host of one of two pictures. It adds the picture's name to messages, and receives those with that name. */
export function paneHost(host: Host, pane: Pane): Host {
  return {
    notebook: host.notebook,
    send: (message, handled) => {
      if (isUnwrapped(message)) host.send(message, handled);
      else host.send({ type: "to_pane", pane, message }, handled);
    },
    onMessage: (callback) =>
      host.onMessage((message, buffers) => {
        if (message.type === "engine") callback(message, buffers);
        if (message.type === "pane" && message.pane === pane) callback(message.message, buffers);
      }),
  };
}
