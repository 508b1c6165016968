/** Reads and writes JSON objects in the data of nodes and in messages. */

export type JsonFields = Readonly<Record<string, unknown>>;

/** Returns the fields of a JSON object; an object without fields if the data is something else. */
export function parseJsonFields(data: Uint8Array): JsonFields {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/**
 * Returns the fields of data that must be a JSON object. If `layout` is given, the data must have this layout number.
 * If the data is invalid, throws the error that `refuse` returns.
 */
export function demandJsonFields(
  data: Uint8Array,
  refuse: (what: string, cause?: unknown) => Error,
  layout?: number,
): JsonFields {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(data));
  } catch (cause) {
    throw refuse("its data is not JSON", cause);
  }
  const fields = isJsonObject(value) ? value : {};
  if (layout === undefined || fields["layout"] === layout) return fields;
  if (!("layout" in fields)) throw refuse("its data has no layout number");
  const newer = describeNewerLayout(fields, layout);
  if (newer !== null) throw refuse(newer);
  throw refuse(`its layout is ${JSON.stringify(fields["layout"])}, expected ${layout}`);
}

/** Returns what to tell users if a newer version of baton has written a node; otherwise null. */
export function describeNewerLayout({ layout: found }: JsonFields, layout: number): string | null {
  if (typeof found !== "number" || found <= layout) return null;
  return `a newer version wrote it (layout ${found}); this version reads layout ${layout}: use the newer version`;
}

export const encodeJson = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

export const stringOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

export const isJsonObject = (value: unknown): value is JsonFields => typeof value === "object" && value !== null;
