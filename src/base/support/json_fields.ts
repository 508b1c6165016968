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
  const found = fields["layout"] ?? "missing";
  throw refuse(`its layout is ${found}, and this version reads ${layout}: use the version that wrote it`);
}

export const encodeJson = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

export const stringOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

export const isJsonObject = (value: unknown): value is JsonFields => typeof value === "object" && value !== null;
