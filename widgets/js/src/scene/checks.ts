// Checks of values from strangers, part by part.
export type Check = (value: unknown) => boolean;
/** A check for each field of a type. */
export type Fields<T> = Readonly<Record<keyof T, Check>>;

/** The most entries of a list. */
const MOST = 10_000_000;

export const text: Check = (value) => typeof value === "string";
export const flag: Check = (value) => typeof value === "boolean";
export const number: Check = (value) => typeof value === "number" && Number.isFinite(value);
export const among =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
/** The kind of a box. */
export const nodeKind = among(
  "constant",
  "control",
  "function",
  "op",
  "placeholder",
  "return",
  "scope",
  "stub",
  "variable",
);
/** A whole number from `from` to below `to`. */
export const within =
  (from: number, to: number): Check =>
  (value) =>
    Number.isInteger(value) && (value as number) >= from && (value as number) < to;
export const list =
  (each: Check, most = MOST): Check =>
  (value) =>
    Array.isArray(value) && value.length <= most && value.every(each);
export const tuple =
  (...checks: readonly Check[]): Check =>
  (value) =>
    Array.isArray(value) && value.length === checks.length && checks.every((check, i) => check(value[i]));
/** For a field that pictures saved by earlier versions lack. */
export const sinceLater =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
export const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
export const table =
  (each: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(each);
export function object<T>(fields: Fields<T>): Check {
  const checks = Object.entries<Check>(fields);
  return (value) => isObject(value) && checks.every(([name, check]) => check(value[name]));
}
