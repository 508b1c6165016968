/** A shell that becomes the command. The runtimes themselves reset every signal to its default, and pass arguments in UTF-8 only. */
import type { RawArgument } from "./raw_arguments.ts";

export interface ShellStart {
  /** The command's name, by which the shell finds it, and its arguments. */
  readonly command: readonly RawArgument[];
  /** Variables to set before, as `NAME=value`. */
  readonly variables: readonly RawArgument[];
  /** The command inherits the ignored signal from the shell. */
  readonly hangUpIgnored: boolean;
}

/** The arguments for /bin/sh. Pure. */
export function shellArgs({ command, variables, hangUpIgnored }: ShellStart): string[] {
  const [name = { text: "" }, ...args] = command;
  const trap = hangUpIgnored ? 'trap "" HUP; ' : "";
  const passed = [...settable(variables), ...args];
  if (passed.every(({ bytes }) => bytes === undefined)) {
    return ["sh", "-c", `${trap}exec "$0" "$@"`, name.text, ...args.map(({ text }) => text)];
  }
  const encoded = [
    ...settable(variables).map((variable) => encode("v", variable)),
    ...args.map((arg) => encode("w", arg)),
  ];
  return ["sh", "-c", `${trap}${decode}`, name.text, ...encoded];
}

/** Prefixes each argument with its kind: t for text, w and v for an argument and a variable that printf %b has to decode. */
function encode(kind: "v" | "w", { text, bytes }: RawArgument): string {
  return bytes === undefined ? `t${text}` : `${kind}${escapeBytes(bytes)}`;
}

/** Moves each argument from the front to the end, decoded. The dot keeps line ends that $( ) would cut off. */
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

/** Escapes bytes for `printf %b`. */
function escapeBytes(bytes: Uint8Array): string {
  const plain = /[A-Za-z0-9_=/.,:+ -]/;
  return Array.from(bytes, (byte) => {
    const character = String.fromCharCode(byte);
    return plain.test(character) ? character : `\\0${byte.toString(8).padStart(3, "0")}`;
  }).join("");
}

/** The variables that a shell can set; another one keeps the value that the runtime passes. */
function settable(variables: readonly RawArgument[]): RawArgument[] {
  return variables.filter(({ text }) => /^[A-Za-z_][A-Za-z0-9_]*=/.test(text));
}

/** A program with a path, and its arguments: nothing for which the shell would have to stay. */
const oneProgram = /^[\w.~$"{}-]*\/[^\s;&|()`'\\<>]+([ \t][^;&|()`\n]*)?$/;

/**
 * A line of shell that is one program: the shell becomes the program, so that signals reach it and its exit code is the line's. Some
 * shells do that by themselves; dash waits, dies of the signal, and how the program ends stays unknown. Pure.
 */
export function replacingShell(line: string): string {
  const words = line.trim();
  return oneProgram.test(words) ? `exec ${words}` : line;
}

/** The command for a line of shell that baton runs beside the command, such as a hook: without its stdin, and with stderr for stdout. */
export function shellLine(line: string): readonly [string, ...string[]] {
  return ["/bin/sh", "-c", `exec </dev/null >&2\n${line}`];
}
