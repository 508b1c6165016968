/**
 * SCRAM authentication without channel binding (RFC 5802 and RFC 7677). The client proves that it knows the password
 * without sending it, and checks that the server knows the password, too. Uses no socket. Encodes the password as UTF-8
 * without SASLprep.
 */
import { createHash, createHmac, pbkdf2 } from "node:crypto";
import { promisify } from "node:util";
import { BatonError } from "../../base/errors.ts";

export type ScramHash = "sha256" | "sha512";

/** The most iterations that a server may ask for. More iterations would keep this process busy for too long. */
const iterationsMax = 1_000_000;
/** The minimum that RFC 7677, section 4, requires. */
const iterationsMin = 4096;

export class ScramExchange {
  readonly #hash: ScramHash;
  readonly #password: string;
  readonly #nonce: string;
  readonly #firstBare: string;
  #serverSignature = "";

  constructor({ hash, user, password, nonce }: {
    readonly hash: ScramHash;
    readonly user: string;
    readonly password: string;
    /** Random printable text without a comma. */
    readonly nonce: string;
  }) {
    this.#hash = hash;
    this.#password = password;
    this.#nonce = nonce;
    this.#firstBare = `n=${user.replaceAll("=", "=3D").replaceAll(",", "=2C")},r=${nonce}`;
  }

  clientFirstMessage(): string {
    return `n,,${this.#firstBare}`;
  }

  /** Returns the response to the server's first message. Rejects with REFUSED if the message is invalid. */
  async clientFinalMessage(serverFirst: string): Promise<string> {
    const { r: nonce = "", s: salt = "", i: count = "" } = parseAttributes(serverFirst);
    const iterations = /^\d{1,7}$/.test(count) ? Number(count) : 0;
    if (!nonce.startsWith(this.#nonce) || nonce === this.#nonce || salt === "") {
      throw invalidMessageError("the first message is incomplete");
    }
    if (iterations < iterationsMin || iterations > iterationsMax) throw invalidMessageError(`${count} iterations`);
    const bytes = this.#hash === "sha256" ? 32 : 64;
    const derive = promisify(pbkdf2);
    const salted = await derive(this.#password, Buffer.from(salt, "base64"), iterations, bytes, this.#hash);
    const withoutProof = `c=biws,r=${nonce}`;
    const all = `${this.#firstBare},${serverFirst},${withoutProof}`;
    const clientKey = this.#hmac(salted, "Client Key");
    const signature = this.#hmac(createHash(this.#hash).update(clientKey).digest(), all);
    const proof = clientKey.map((byte, at) => byte ^ (signature[at] ?? 0));
    this.#serverSignature = this.#hmac(this.#hmac(salted, "Server Key"), all).toString("base64");
    return `${withoutProof},p=${Buffer.from(proof).toString("base64")}`;
  }

  /** Throws REFUSED if the server has not proved that it knows the password. */
  verify(serverFinal: string): void {
    const { v: signature } = parseAttributes(serverFinal);
    if (signature === undefined || signature !== this.#serverSignature) {
      throw new BatonError("REFUSED", "the broker did not prove that it knows the password: it may be an impostor");
    }
  }

  #hmac(key: Uint8Array, text: string): Buffer {
    return createHmac(this.#hash, key).update(text).digest();
  }
}

function parseAttributes(message: string): Record<string, string> {
  return Object.fromEntries(message.split(",").map((part) => [part.slice(0, 1), part.slice(2)]));
}

function invalidMessageError(what: string): BatonError {
  return new BatonError("REFUSED", `the broker sent an invalid SCRAM message: ${what}`);
}
