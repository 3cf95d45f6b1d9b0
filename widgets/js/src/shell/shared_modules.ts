// The modules that JupyterLab shares with its extensions by module federation.

/** The shared modules of the page, by name and version. */
export type ShareScope = Readonly<Record<string, Readonly<Record<string, { get(): Promise<() => unknown> }>>>>;

/** Gives a shared module by its name, undefined if the page has none. */
export type Share = (name: string) => Promise<unknown>;

/** Looks modules up in a scope, in any version. */
export function sharing(scope: ShareScope): Share {
  return async (name) => {
    const [shared] = Object.values(scope[name] ?? {});
    return shared && (await shared.get())();
  };
}
