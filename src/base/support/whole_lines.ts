/** Divides bytes into whole lines, each with a prefix. */

const lineFeed = 10;
/** A longer line is divided, because a line is kept in memory until its end. */
export const wholeLineBytesMax = 1024 * 1024;
/** How many parts of a line are kept separately. */
const partsMax = 1000;

export class WholeLines {
  readonly #prefix: Uint8Array;
  /** The parts of the line that has not ended. */
  #open: Uint8Array[] = [];
  #openLength = 0;

  constructor(prefix: string) {
    this.#prefix = Buffer.from(prefix);
  }

  /** Returns the lines that end in these bytes. */
  take(bytes: Uint8Array): Uint8Array {
    const end = bytes.lastIndexOf(lineFeed) + 1;
    const ended = end === 0 ? new Uint8Array() : this.#lines(Buffer.concat([...this.#open, bytes.subarray(0, end)]));
    if (end > 0) this.#clear();
    if (this.#open.length >= partsMax) this.#open = [Buffer.concat(this.#open)];
    if (end < bytes.length) this.#open.push(bytes.slice(end));
    this.#openLength += bytes.length - end;
    return this.#openLength > wholeLineBytesMax ? Buffer.concat([ended, this.end()]) : ended;
  }

  /** Returns the last line, if it has not ended, with a line feed. */
  end(): Uint8Array {
    const last = this.#openLength === 0 ? [] : [...this.#open, Uint8Array.of(lineFeed)];
    this.#clear();
    return this.#lines(Buffer.concat(last));
  }

  #clear(): void {
    this.#open = [];
    this.#openLength = 0;
  }

  #lines(bytes: Uint8Array): Uint8Array {
    if (this.#prefix.length === 0) return bytes;
    const parts: Uint8Array[] = [];
    for (let at = 0; at < bytes.length;) {
      const end = bytes.indexOf(lineFeed, at) + 1;
      parts.push(this.#prefix, bytes.subarray(at, end));
      at = end;
    }
    return Buffer.concat(parts);
  }
}
