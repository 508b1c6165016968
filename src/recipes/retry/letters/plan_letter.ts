/** Whether a dead letter is in its file already, after a crash in the middle. Pure. */

/**
 * `tail` is what the file has behind the place where the letter was going to be written, all of it. `there`: it is in it, whole.
 * `cut`: half of it is the end, left by a crash, to be taken off before it is written. `append`: write it at the end.
 */
export function planLetter(tail: string, letter: string): "there" | "cut" | "append" {
  if (`\n${tail}`.includes(`\n${letter}`)) return "there";
  const last = tail.slice(tail.lastIndexOf("\n") + 1);
  return last !== "" && letter.startsWith(last) ? "cut" : "append";
}
