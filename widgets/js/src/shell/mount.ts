// The entry point: a viewer of a graph, a function, or a difference, in an element of the page.
import { DifferencePane } from "../panes/difference_pane";
import { FunctionPane } from "../panes/function_pane";
import type { StatesMessage } from "../scene/generated";
import { speak } from "../scene/words";
import { installStyle } from "../style/style";
import type { Handle, Host, MountOptions, StatesOfDifference } from "./host";
import { liveHost } from "./live_host";
import { paneHost } from "./pane_host";
import { Viewer } from "./viewer";

/** Mounts a viewer in an element. */
export function mount(element: HTMLElement, host: Host, options: MountOptions = {}): Handle {
  speak(options.language ?? "");
  installStyle(element);
  const viewer =
    options.kind === "function"
      ? new FunctionPane(host, options)
      : options.states
        ? new DifferencePane(options, options.states, new Viewer(host, { ...options, height: "fill" }))
        : new Viewer(options.live ? liveHost(host) : host, options, {
            function: (message) => new FunctionPane(host, { ...options, over: message }),
            ...(options.live
              ? {
                  states: (message, under) =>
                    new DifferencePane(options, liveStates(host, message), { ...under, host }),
                }
              : {}),
          });
  element.append(viewer.root);
  viewer.start();
  return { dispose: () => viewer.dispose() };
}

/** Both states of a difference whose pictures live in a kernel. */
function liveStates(host: Host, message: StatesMessage): StatesOfDifference {
  return { ...message, hosts: [liveHost(paneHost(host, "before")), liveHost(paneHost(host, "after"))] };
}
