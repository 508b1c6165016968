/** Describes the content of a help page. Other modules write it as terminal text, as a man page, and as Markdown. */

export interface HelpPage {
  /** The name of a command (`pubsub client`) or of a topic (`exit-codes`). */
  readonly name: string;
  /** One line that says what the command does, or what the page is about. */
  readonly summary: string;
  /** The command lines of the command; a topic has none. */
  readonly usage: readonly string[];
  readonly blocks: readonly HelpBlock[];
}

export type HelpBlock =
  /** A heading. `part` is the chapter of the man page that contains this heading. Terminal text has no chapters. */
  | { readonly kind: "heading"; readonly text: string; readonly part?: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "entries"; readonly entries: readonly HelpEntry[] }
  | { readonly kind: "examples"; readonly examples: readonly HelpExample[] };

/** A term and its meaning. The term is an option, a variable or an exit code. */
export interface HelpEntry {
  readonly term: string;
  readonly meaning: string;
  /** The value that applies if the option is not given; empty if there is none. */
  readonly standard?: string;
  readonly variable?: string | null;
}

/** A command line, or the lines of a file, and a sentence that says what it does. */
export type HelpExample = readonly [line: string, does: string];

/** Returns the meaning of an entry, with its default and its variable, as text. */
export function helpEntryText({ meaning, standard = "", variable = null }: HelpEntry): string {
  return `${meaning}${standard === "" ? "" : ` (default: ${standard})`}${variable === null ? "" : ` [${variable}]`}`;
}
