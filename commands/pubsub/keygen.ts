/** Defines `baton pubsub keygen`, which makes a key pair for ZeroMQ's CURVE encryption. */
import { formatCurveKey, formatSecretCurveCertificate } from "../../src/protocols/zeromq/curve_certificate.ts";
import { readCurveSecretKey } from "../../src/protocols/zeromq/curve_key_file.ts";
import { makeCurveKeyFiles, newCurveSecretKey } from "../../src/protocols/zeromq/make_key_files.ts";
import { type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { prepareX25519Secret } from "../../src/base/support/x25519.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { KeygenJson } from "../json_shapes/machine_shapes.ts";

const settings = {
  force: toggleSetting("-f, --force", {
    help: "replace an existing key",
  }),
  public: toggleSetting("-p, --public", {
    help: "make no key: check FILE and print its public key",
  }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
} satisfies SettingTable;

export const keygenCommand = defineCommand({
  name: "pubsub keygen",
  summary: "make a key pair for encrypted connections (CURVE)",
  usage: "[FILE] [options]",
  details: [
    "Writes the key pair to FILE, which only its owner can read, and the public key to FILE.pub, for other users; " +
    "prints the public key. Either both files are written or neither, and existing files are replaced only with " +
    "--force.",
    "Without FILE the whole pair is printed, including the secret key, for a program that stores secrets.",
    "The files are certificates as CZMQ (zcert) and PyZMQ (zmq.auth) write them, so that other ZeroMQ programs can " +
    "use them. baton rejects a secret key file that other users can read (78).",
  ],
  examples: [
    ["baton pubsub keygen /etc/baton/server.key", "makes server.key and server.key.pub"],
    ["baton pubsub keygen --public /etc/baton/server.key", "is the file in order, and which public key has it?"],
    ["baton pubsub keygen | systemd-creds encrypt - server.cred", "a pair that never lies on a disk in the clear"],
  ],
  settings,
  completes: "files",
  runsNothing: true,
  run: keygen,
});

// deno-lint-ignore require-await -- a command is asynchronous, this one has nothing to wait for
async function keygen({ values, names, io }: CommandCall<typeof settings>): Promise<ExitCode> {
  const [file, ...more] = names;
  if (more.length > 0) {
    throw new BatonError("USAGE", `baton pubsub keygen takes one file, not "${names.join('", "')}"`);
  }
  if (file === "") throw new BatonError("USAGE", "baton pubsub keygen: FILE is empty");
  if (file === undefined && (values.force || values.public)) {
    throw new BatonError("USAGE", `baton pubsub keygen ${values.force ? "--force" : "--public"} needs a FILE`);
  }
  if (values.force && values.public) throw new BatonError("USAGE", "use only one of --force and --public");
  const print = (fields: Omit<KeygenJson, "version">, plain: string) => {
    if (values.json) printJson<KeygenJson>(io, { version: 1, ...fields });
    else io.out(plain);
  };
  if (file === undefined) {
    const secret = newCurveSecretKey();
    const fields = {
      public_key: formatCurveKey(prepareX25519Secret(secret).publicKey),
      secret_key: formatCurveKey(secret),
    };
    print(fields, formatSecretCurveCertificate(secret));
    return exitCodes.SUCCESS;
  }
  if (values.public) {
    const publicKey = formatCurveKey(readCurveSecretKey(file).publicKey);
    print({ public_key: publicKey, file }, `${publicKey}\n`);
    return exitCodes.SUCCESS;
  }
  const made = makeCurveKeyFiles(file, { replaces: values.force });
  const publicKey = formatCurveKey(made.publicKey);
  if (!values.quiet) {
    io.err(`baton: ${file} has the secret key: keep it private; ${made.publicFile} is for other users\n`);
  }
  print({ public_key: publicKey, file, public_file: made.publicFile }, `${publicKey}\n`);
  return exitCodes.SUCCESS;
}
