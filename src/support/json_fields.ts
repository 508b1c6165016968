/** The fields of a JSON object that somebody else may have written. */

export type JsonFields = Readonly<Record<string, unknown>>;

/** None of what is no object, or no JSON. */
export function jsonFields(data: Uint8Array): JsonFields {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(data));
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}

/** Empty for what is no text. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

export const isFields = (value: unknown): value is JsonFields => typeof value === "object" && value !== null;
