/** HTTP header fields as pairs of name and value, in their original order and spelling. Pure. */

export type HttpHeaders = readonly (readonly [name: string, value: string])[];

/** Returns the value of the first header with this name (in lower case), or null if there is none. */
export function httpHeaderValue(headers: HttpHeaders, wanted: string): string | null {
  return headers.find(([name]) => name.toLowerCase() === wanted)?.[1] ?? null;
}

/** Returns `headers` after the headers of `by` have replaced all headers with the same names. */
export function replaceHttpHeaders(headers: HttpHeaders, by: HttpHeaders): HttpHeaders {
  const names = by.map(([name]) => name.toLowerCase());
  return [...headers.filter(([name]) => !names.includes(name.toLowerCase())), ...by];
}

/** Converts node:http's list of alternating names and values to pairs. */
export function pairRawHttpHeaders(raw: readonly string[]): HttpHeaders {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) pairs.push([raw[at] ?? "", raw[at + 1] ?? ""]);
  return pairs;
}
