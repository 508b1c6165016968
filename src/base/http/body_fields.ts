/** Reads the fields of a request's JSON body. */
import { isJsonObject, type JsonFields } from "../support/json_fields.ts";
import { HttpError } from "./http_error.ts";

const textLengthMax = 4096;

/** Returns a text field. Throws an HttpError (400) if it is missing or its length is wrong. */
export function requireTextField(fields: JsonFields, key: string, lengthMin = 1): string {
  const value = fields[key];
  if (typeof value === "string" && value.length >= lengthMin && value.length <= textLengthMax) return value;
  throw new HttpError(400, `"${key}" must be a text of ${lengthMin} to ${textLengthMax} characters\n`);
}

/** Parses the body of a request. Throws an HttpError (400) unless the body is a JSON object. */
export function parseJsonBody(body: Uint8Array): JsonFields {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    if (isJsonObject(value)) return value;
  } catch {
    // The error below reports malformed JSON.
  }
  throw new HttpError(400, "The body must be a JSON object\n");
}
