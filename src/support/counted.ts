/** A number with what it counts, as a sentence has it: `1 message`, `2 messages`. */
export function counted(count: number, singular: string, plural = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : plural}`;
}
