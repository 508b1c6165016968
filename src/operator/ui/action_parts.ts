/** Finds the command in the action of a finding. Pure. */

/**
 * Parts the action of a finding into words, its first command, and the text after that command. The command is null if
 * there is none. It ends before a semicolon that is not in quotation marks.
 */
export function actionParts(
  action: string,
): { readonly words: string; readonly command: string | null; readonly more: string } {
  const parts = /^(?:(.*?: ))?(baton (?:'[^']*'|\\.|[^';\\])*)(.*)$/s.exec(action);
  const [, words = "", command = null, more = ""] = parts ?? ["", action];
  return { words, command, more };
}
