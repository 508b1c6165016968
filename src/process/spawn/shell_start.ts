/**
 * A shell that becomes the command: for what the runtimes cannot say when they start one. They give it the default of
 * every signal, and words in UTF-8 only.
 */
import type { Word } from "./raw_arguments.ts";

export interface ShellStart {
  /** The command's first word, by which the shell finds it, and its arguments. */
  readonly command: readonly Word[];
  /** `NAME=value`, to be set before. */
  readonly variables: readonly Word[];
  /** A shell that ignores a signal and becomes the command keeps that. */
  readonly hangUpIgnored: boolean;
}

/** The words to start /bin/sh with. Pure. */
export function shellWords({ command, variables, hangUpIgnored }: ShellStart): string[] {
  const [name = { text: "" }, ...args] = command;
  const trap = hangUpIgnored ? 'trap "" HUP; ' : "";
  const words = [...settable(variables), ...args];
  if (words.every(({ bytes }) => bytes === undefined)) {
    return ["sh", "-c", `${trap}exec "$0" "$@"`, name.text, ...args.map(({ text }) => text)];
  }
  const marked = [...settable(variables).map((word) => mark("v", word)), ...args.map((word) => mark("w", word))];
  return ["sh", "-c", `${trap}${decode}`, name.text, ...marked];
}

/** A letter before each word says what it is: t a text, w and v a word and a variable that printf %b has to decode. */
function mark(kind: "v" | "w", { text, bytes }: Word): string {
  return bytes === undefined ? `t${text}` : `${kind}${escapes(bytes)}`;
}

/** Each word is taken from the front and put behind the others. The dot keeps line ends that $( ) would cut off. */
const decode = `_baton_left=$#
while [ "$_baton_left" -gt 0 ]; do
  _baton_word=$1
  shift
  _baton_left=$((_baton_left - 1))
  case $_baton_word in
    t*) set -- "$@" "\${_baton_word#t}"; continue ;;
  esac
  _baton_text=$(printf %b "\${_baton_word#?}.")
  case $_baton_word in
    v*) export "\${_baton_text%.}" ;;
    *) set -- "$@" "\${_baton_text%.}" ;;
  esac
done
exec "$0" "$@"`;

/** As `printf %b` reads it. */
function escapes(bytes: Uint8Array): string {
  const plain = /[A-Za-z0-9_=/.,:+ -]/;
  return Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    return plain.test(character) ? character : `\\0${byte.toString(8).padStart(3, "0")}`;
  }).join("");
}

/** The shell sets no variable of another name; such a one keeps what the runtime made of it. */
function settable(variables: readonly Word[]): Word[] {
  return variables.filter(({ text }) => /^[A-Za-z_][A-Za-z0-9_]*=/.test(text));
}
