/** Fields of JSON objects from outside. */

export type JsonFields = Readonly<Record<string, unknown>>;

/** The fields; none when the data is not a JSON object. */
export function jsonFields(data: Uint8Array): JsonFields {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** The JSON value. Throws what `refuse` returns for data that is not JSON. */
export function demandJson(data: Uint8Array, refuse: (what: string, cause: unknown) => Error): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(data));
  } catch (cause) {
    throw refuse("its data is not JSON", cause);
  }
}

/** The text; empty when the value is not a text. */
export const stringOrEmpty = (value: unknown): string => (typeof value === "string" ? value : "");

export const isJsonObject = (value: unknown): value is JsonFields => typeof value === "object" && value !== null;
