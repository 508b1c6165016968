/** The server's side of SCRAM (RFC 5802), for one user whose password it keeps as a server does: salted, hashed. */
import { createHash, createHmac, pbkdf2Sync, randomUUID } from "node:crypto";

export class ScramServer {
  readonly #hash: "sha256" | "sha512";
  readonly #storedKey: Uint8Array;
  readonly #serverKey: Uint8Array;
  readonly #salt = Buffer.from("some salt");
  #firsts = "";

  constructor(hash: "sha256" | "sha512", password: string) {
    this.#hash = hash;
    const salted = pbkdf2Sync(password, this.#salt, 4096, hash === "sha256" ? 32 : 64, hash);
    this.#storedKey = createHash(hash).update(createHmac(hash, salted).update("Client Key").digest()).digest();
    this.#serverKey = createHmac(hash, salted).update("Server Key").digest();
  }

  /** Null: the client does not know the password. */
  answer(message: string): string | null {
    if (message.startsWith("n,,")) {
      const nonce = /,r=(.*)$/.exec(message)?.[1];
      const first = `r=${nonce}${randomUUID()},s=${this.#salt.toString("base64")},i=4096`;
      this.#firsts = `${message.slice(3)},${first}`;
      return first;
    }
    const [, withoutProof = "", proof = ""] = /^(.*),p=(.*)$/.exec(message) ?? [];
    const all = `${this.#firsts},${withoutProof}`;
    const signature = createHmac(this.#hash, this.#storedKey).update(all).digest();
    const clientKey = Buffer.from(proof, "base64").map((byte, at) => byte ^ (signature[at] ?? 0));
    if (!createHash(this.#hash).update(clientKey).digest().equals(this.#storedKey)) return null;
    return `v=${createHmac(this.#hash, this.#serverKey).update(all).digest("base64")}`;
  }
}
