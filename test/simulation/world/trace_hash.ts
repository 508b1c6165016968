/** A hash of everything that happens in a run: two runs with the same hash took the same way. Integer arithmetic alone (FNV-1a, twice). */

const prime = 0x01000193;
const otherPrime = 0x85ebca6b;

export class TraceHash {
  #one = 0x811c9dc5;
  #other = 0x9747b28c;
  readonly #number = new Float64Array(1);
  readonly #numberBytes = new Uint8Array(this.#number.buffer);

  number(value: number): void {
    this.#number[0] = value;
    this.bytes(this.#numberBytes);
  }

  text(value: string): void {
    let one = this.#one;
    let other = this.#other;
    for (let at = 0; at < value.length; at++) {
      const code = value.charCodeAt(at);
      one = Math.imul(one ^ code, prime);
      other = Math.imul((other << 5 | other >>> 27) ^ code, otherPrime);
    }
    this.#one = one;
    this.#other = other;
  }

  bytes(value: Uint8Array): void {
    let one = this.#one;
    let other = this.#other;
    for (let at = 0; at < value.length; at++) {
      const byte = value[at] as number;
      one = Math.imul(one ^ byte, prime);
      other = Math.imul((other << 5 | other >>> 27) ^ byte, otherPrime);
    }
    this.#one = one;
    this.#other = other;
  }

  /** Sixteen hexadecimal digits. */
  get value(): string {
    return [this.#one, this.#other].map((half) => (half >>> 0).toString(16).padStart(8, "0")).join("");
  }
}
