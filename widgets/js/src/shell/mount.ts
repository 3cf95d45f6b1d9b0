// The entry point: a viewer of a graph, a function, or a difference, in an element of the page.
import { DifferencePane } from "../panes/difference_pane";
import { FunctionPane } from "../panes/function_pane";
import { speak } from "../scene/words";
import { installStyle } from "../style/style";
import type { Handle, Host, MountOptions } from "./host";
import { liveHost } from "./live_host";
import { Viewer } from "./viewer";

/** Mounts a viewer in an element. */
export function mount(element: HTMLElement, host: Host, options: MountOptions = {}): Handle {
  speak(options.language ?? "");
  installStyle(element);
  const viewer =
    options.kind === "function"
      ? new FunctionPane(host, options)
      : options.states
        ? new DifferencePane(host, options, options.states)
        : new Viewer(
            options.live ? liveHost(host) : host,
            options,
            (message) => new FunctionPane(host, { ...options, over: message }),
          );
  element.append(viewer.root);
  viewer.start();
  return { dispose: () => viewer.dispose() };
}
