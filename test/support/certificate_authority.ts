/**
 * Certificates made for one test, by openssl, in a folder of its own: good ones, and ones that a client has to refuse.
 */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"] as const;

export interface IssueOptions {
  /** subjectAltName, as in "DNS:localhost,IP:127.0.0.1"; none when left out. */
  readonly names?: string;
  /** It ended yesterday. */
  readonly isExpired?: boolean;
  /** Encrypts the private key. */
  readonly passphrase?: string;
}

/** The paths of PEM files. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

export class CertificateAuthority {
  /** The path of its own certificate. */
  readonly ca: string;
  readonly #folder: string;
  readonly #name: string;

  static async start(folder: string, name: string): Promise<CertificateAuthority> {
    const authority = new CertificateAuthority(folder, name);
    const files = ["-keyout", authority.#path("ca_key"), "-out", authority.ca];
    await run("openssl", ["req", "-x509", ...newKey, "-nodes", "-subj", `/CN=${name}`, "-days", "30", ...files]);
    return authority;
  }

  private constructor(folder: string, name: string) {
    this.#folder = folder;
    this.#name = name;
    this.ca = this.#path("ca");
  }

  /** A certificate for `CN=subject`. Files of one authority differ by the subject. */
  async issue(subject: string, { names, isExpired = false, passphrase }: IssueOptions = {}): Promise<Issued> {
    const [cert, key, request] = [this.#path(subject), this.#path(`${subject}_key`), this.#path(`${subject}_request`)];
    const lock = passphrase === undefined ? ["-nodes"] : ["-passout", `pass:${passphrase}`];
    await run("openssl", ["req", ...newKey, ...lock, "-subj", `/CN=${subject}`, "-keyout", key, "-out", request]);
    const extensions = this.#path(`${subject}_extensions`);
    writeFileSync(extensions, names === undefined ? "" : `subjectAltName=${names}\n`);
    const signer = ["-CA", this.ca, "-CAkey", this.#path("ca_key"), "-CAcreateserial"];
    const days = ["-days", isExpired ? "-1" : "30", "-extfile", extensions];
    await run("openssl", ["x509", "-req", "-in", request, ...signer, ...days, "-out", cert]);
    return { cert, key };
  }

  /** The path of a PKCS #12 key store, as Java's keytool makes them. */
  async keyStore({ cert, key }: Issued, password: string): Promise<string> {
    const path = `${cert}.p12`;
    const files = ["-in", cert, "-inkey", key, "-certfile", this.ca, "-out", path];
    await run("openssl", ["pkcs12", "-export", "-name", "server", ...files, "-passout", `pass:${password}`]);
    return path;
  }

  read(path: string): string {
    return readFileSync(path, "utf8");
  }

  #path(name: string): string {
    return join(this.#folder, `${this.#name}_${name}.pem`);
  }
}
