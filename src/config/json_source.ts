/** JSON as people edit it: JSON.parse does the values, this keeps the line of every key, and of what is wrong. */

export interface JsonSource {
  readonly value: unknown;
  /** Dotted key → line, counted from 1. */
  readonly lines: ReadonlyMap<string, number>;
}

export class JsonSyntaxError extends Error {
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

interface Token {
  readonly text: string;
  readonly line: number;
}

/** Objects and arrays nested deeper than this are refused. */
const depthMax = 32;

/** Throws JsonSyntaxError, which has the line of the first thing that does not belong there. */
export function parseJsonSource(source: string): JsonSource {
  const tokens = tokensOf(source);
  const lines = new Map<string, number>();
  let at = 0;

  function next(expected?: string): Token {
    const token = tokens[at++];
    const last = tokens[tokens.length - 1]?.line ?? 1;
    if (token === undefined) throw new JsonSyntaxError(`the text ends where ${expected ?? "a value"} should be`, last);
    if (expected !== undefined && token.text !== expected) {
      throw new JsonSyntaxError(`${token.text} stands where ${expected} should be`, token.line);
    }
    return token;
  }

  /** The members of an object or array, up to its closing bracket. */
  function members(close: string, member: () => void): void {
    if (tokens[at]?.text === close) return void next();
    for (;;) {
      member();
      if (tokens[at]?.text === close) return void next();
      next(",");
    }
  }

  function value(path: string | null, depth: number): unknown {
    const token = next();
    if (depth > depthMax) throw new JsonSyntaxError(`it is nested more than ${depthMax} deep`, token.line);
    if (token.text === "[") {
      const items: unknown[] = [];
      members("]", () => items.push(value(`${path}[${items.length}]`, depth + 1)));
      return items;
    }
    if (token.text !== "{") return scalar(token);
    const entries = new Map<string, unknown>();
    members("}", () => {
      const key = next();
      const name = scalar(key);
      if (typeof name !== "string") throw new JsonSyntaxError(`${key.text} stands where a key should be`, key.line);
      next(":");
      const full = path === null ? name : `${path}.${name}`;
      if (entries.has(name)) throw new JsonSyntaxError(`the key ${full} is there twice`, key.line);
      lines.set(full, lines.get(full) ?? key.line);
      entries.set(name, value(full, depth + 1));
    });
    return Object.fromEntries(entries);
  }

  const whole = value(null, 0);
  const rest = tokens[at];
  if (rest !== undefined) throw new JsonSyntaxError(`${rest.text} stands after the end`, rest.line);
  return { value: whole, lines };
}

function scalar(token: Token): unknown {
  try {
    return JSON.parse(token.text);
  } catch {
    throw new JsonSyntaxError(`${token.text} is not JSON`, token.line);
  }
}

function tokensOf(source: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  for (const [text] of source.matchAll(/\n|"(?:[^"\\\n]|\\.)*"?|[{}[\]:,]|[^\s{}[\]:,"]+/g)) {
    if (text === "\n") line++;
    else tokens.push({ text, line });
  }
  return tokens;
}
