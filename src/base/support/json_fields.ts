/** JSON objects in the data of nodes and in messages. */

export type JsonFields = Readonly<Record<string, unknown>>;

/** The fields; none when the data is not a JSON object. */
export function parseJsonFields(data: Uint8Array): JsonFields {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/**
 * The fields of data that must be JSON, and in this layout if there is one. Throws what `refuse` returns for data that
 * is not JSON or has another layout.
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
  throw refuse(`its layout is ${JSON.stringify(fields["layout"])}, expected ${layout}`);
}

/** The data of a node, or the body of a message, that contains the value. */
export const encodeJson = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** The text; empty when the value is not a text. */
export const stringOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

export const isJsonObject = (value: unknown): value is JsonFields => typeof value === "object" && value !== null;
