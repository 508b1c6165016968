/** The priorities that have names. In a queue, the lowest number goes first. */
export const namedPriorities = { foreground: 100, background: 200 } as const;

export type PriorityName = keyof typeof namedPriorities;

export function isPriorityName(word: string): word is PriorityName {
  return Object.hasOwn(namedPriorities, word);
}
