// Highlights a dimension under the mouse or the focus, with all places and lines of the same number.

const LIT = "gl-lit";

/** Listens in `root` until `signal` fires. Calls `report` with the number of highlighted lines, null for no highlight. */
export function lightDimensions(root: HTMLElement, report: (lines: number | null) => void, signal: AbortSignal): void {
  let shown = "";

  const light = (key: string): void => {
    if (key === "" && shown === "") return; // others are lit again: a new picture may have other places of the same number
    shown = key;
    const lines = new Set<Element>();
    for (const place of root.querySelectorAll<SVGElement | HTMLElement>("[data-dim]")) {
      const lit = key !== "" && place.dataset.dim === key;
      place.classList.toggle(LIT, lit);
      const line = place.closest(".gl-edge");
      if (lit && line) lines.add(line);
    }
    for (const line of root.querySelectorAll(".gl-edge")) line.classList.toggle(LIT, lines.has(line));
    report(key === "" ? null : lines.size);
  };
  // A box, with what it differentiates and what differentiates it.
  const lightMirrors = (target: Element | null): void => {
    const { nodeId, mirrors } = target?.closest<SVGElement>(".gl-node")?.dataset ?? {};
    for (const box of root.querySelectorAll<SVGElement>(".gl-node"))
      box.classList.toggle(
        LIT,
        [nodeId, mirrors].some((id) => id && [box.dataset.nodeId, box.dataset.mirrors].includes(id)),
      );
  };
  const look = ({ target }: Event): void => {
    lightMirrors(target instanceof Element ? target : null);
    const place = target instanceof Element ? target.closest<SVGElement | HTMLElement>("[data-dim]") : null;
    const key = place?.dataset.dim ?? "";
    light(key);
  };
  const leave = (): void => {
    lightMirrors(null);
    light("");
  };

  root.addEventListener("pointerover", look, { signal });
  root.addEventListener("pointerleave", leave, { signal });
  root.addEventListener("focusin", look, { signal });
  root.addEventListener("focusout", leave, { signal });
}
