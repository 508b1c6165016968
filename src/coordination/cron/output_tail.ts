/** The last lines of an output that is read for another purpose. */

/** The maximum size of the lines in bytes. */
const tailBytesMax = 4096;

export class OutputTail {
  #bytes: Uint8Array = new Uint8Array();

  /** Passes the output on, and keeps its end. */
  async *keep(output: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
    for await (const chunk of output) {
      this.add(chunk);
      yield chunk;
    }
  }

  add(chunk: Uint8Array): void {
    const joined = Buffer.concat([this.#bytes, chunk.subarray(Math.max(0, chunk.length - tailBytesMax - 1))]);
    this.#bytes = joined.subarray(Math.max(0, joined.length - tailBytesMax - 1));
  }

  /** Returns whole lines if one of them is short enough, without NUL characters, which a variable cannot hold. */
  text(): string {
    const bytes = this.#bytes;
    const isCut = bytes.length > tailBytesMax;
    const lineEnd = isCut ? bytes.indexOf(0x0a) : -1;
    const start = lineEnd >= 0 && lineEnd < bytes.length - 1 ? lineEnd + 1 : isCut ? 1 : 0;
    return new TextDecoder().decode(bytes.subarray(start)).replaceAll("\0", "");
  }
}
