// Light or dark theme: that of JupyterLab, VS Code or the system, observed while the viewer lives.

/** True if the page around the element is dark. */
export function isDark(): boolean {
  const { body, documentElement } = document;
  const jupyter = body.dataset.jpThemeLight ?? documentElement.dataset.jpThemeLight;
  if (jupyter !== undefined) return jupyter === "false";
  if (body.classList.contains("vscode-dark") || body.classList.contains("vscode-high-contrast")) return true;
  if (body.classList.contains("vscode-light")) return false;
  return globalThis.matchMedia?.("(prefers-color-scheme: dark)").matches ?? false;
}

/** Keeps the element's `data-theme` up to date until `signal` fires. */
export function followTheme(element: HTMLElement, signal: AbortSignal): void {
  const look = (): void => {
    element.dataset.theme = isDark() ? "dark" : "light";
  };
  look();
  const observer = new MutationObserver(look);
  const options = { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] };
  observer.observe(document.body, options);
  observer.observe(document.documentElement, options);
  globalThis.matchMedia?.("(prefers-color-scheme: dark)").addEventListener?.("change", look, { signal });
  signal.addEventListener("abort", () => observer.disconnect());
}
