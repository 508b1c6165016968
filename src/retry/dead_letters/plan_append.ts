/** Whether a dead letter is in its file already, after a crash in the middle. Pure. */

/**
 * `start`: what any line of this letter begins with; left out: all of it. `tail` is what the file has behind the place where the letter was going to be written, all of it. `there`: it is in it, whole.
 * `cut`: half of it is the end, left by a crash, to be taken off before it is written. `append`: write it at the end.
 */
export function planLetter(tail: string, letter: string, start = letter): "there" | "cut" | "append" {
  const end = tail.lastIndexOf("\n") + 1;
  if (`\n${tail.slice(0, end)}`.includes(`\n${start}`)) return "there";
  const last = tail.slice(end);
  // What was left out may have been other settings' then: half of the line may go on differently.
  return last !== "" && (letter.startsWith(last) || last.startsWith(start)) ? "cut" : "append";
}
