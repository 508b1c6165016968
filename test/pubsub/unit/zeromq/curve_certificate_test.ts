import { describe, expect, test } from "bun:test";
import {
  formatCurveKey,
  formatPublicCurveCertificate,
  formatSecretCurveCertificate,
  parseCurveCertificate,
} from "../../../../src/protocols/zeromq/curve_certificate.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { prepareX25519Secret } from "../../../../src/base/support/x25519.ts";

const secretKey = new Uint8Array(32).fill(7);
const { publicKey } = prepareX25519Secret(secretKey);
const publicText = formatCurveKey(publicKey);

function refusalOf(text: string): string {
  try {
    parseCurveCertificate(text, "a.key");
  } catch (error) {
    if (error instanceof BatonError && error.code === "CONFIG") return error.message;
    throw error;
  }
  throw new Error("It was taken");
}

test("what is written is read again, the secret key by its owner only", () => {
  expect(parseCurveCertificate(formatSecretCurveCertificate(secretKey), "a.key")).toEqual({ publicKey, secretKey });
  expect(parseCurveCertificate(formatPublicCurveCertificate(publicKey), "a.key.pub")).toEqual({
    publicKey,
    secretKey: null,
  });
  expect(formatPublicCurveCertificate(publicKey)).not.toContain(formatCurveKey(secretKey));
});

test("a certificate as CZMQ writes it, with a # in a value and names of its own", () => {
  const text = `#   ****  Generated on 2026-11-21 23:05:02 by CZMQ  ****
#   ZeroMQ CURVE **Secret** Certificate

metadata
    name = "Alice's # key"
    public-key = "not of the section curve"
curve
    public-key = "HU7V=rCuQ]BeHsOWkuuCmxqiG*I*ms#J!Npu}n<]"  # this one
    secret-key = 'JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6'
`;
  const { publicKey: own, secretKey: secret } = parseCurveCertificate(
    text.replace(/"HU7V[^"]*"/, `"${publicText}"`).replace(/'JTKV.*'/, `'${formatCurveKey(secretKey)}'`),
    "a.key",
  );
  expect([own, secret]).toEqual([publicKey, secretKey]);
});

test("names of other sections mean nothing, whatever they are and wherever they stand", () => {
  const text = `${
    formatPublicCurveCertificate(publicKey)
  }notes\n    public-key = "an old one"\n    secret-key = "gone"\n`;
  expect(parseCurveCertificate(text, "a.key")).toEqual({ publicKey, secretKey: null });
});

test("Windows' line ends and tabs", () => {
  const text = formatPublicCurveCertificate(publicKey).replaceAll("    ", "\t").replaceAll("\n", "\r\n");
  expect(parseCurveCertificate(text, "a.key").publicKey).toEqual(publicKey);
});

describe("is refused with its file, its line and what is wrong, and without the key itself:", () => {
  const secretText = formatSecretCurveCertificate(secretKey);
  const change = (from: string, to: string) => secretText.replace(from, to);
  const other = formatCurveKey(prepareX25519Secret(new Uint8Array(32).fill(8)).publicKey);
  test.each([
    [
      "an empty file",
      "",
      /^There is no key in a\.key: a key file has a section `curve` with a line `public-key = "…"`$/,
    ],
    ["a bare key", `${publicText}\n`, /There is no key in a\.key/],
    ["a key outside the section", `public-key = "${publicText}"\n`, /There is no key in a\.key/],
    ["a secret key alone", change(/.*public-key.*\n/.exec(secretText)?.[0] ?? "", ""), /There is no key/],
    [
      "a key that is too short",
      change(publicText, publicText.slice(1)),
      /^The public-key in a\.key, line 4, has 39 characters, and a key has 40$/,
    ],
    ["a key with more behind it", change(publicText, `${publicText}0`), /line 4, has 41 characters/],
    ["an empty key", change(publicText, ""), /line 4, has 0 characters/],
    [
      "a character of no key",
      change(publicText, `${publicText.slice(0, 6)}_${publicText.slice(7)}`),
      /^The public-key in a\.key, line 4, is not a key in Z85: its character 7 is none of Z85$/,
    ],
    [
      "more than Z85 can say",
      change(publicText, `#####${publicText.slice(5)}`),
      /characters 1 to 5 are more than 32 bits/,
    ],
    [
      "a pair that is none",
      change(publicText, other),
      /^The public-key in a\.key does not belong to the secret-key beside it$/,
    ],
    [
      "a public key of low order",
      formatPublicCurveCertificate(new Uint8Array(32)),
      /^The public-key in a\.key cannot be a public key/,
    ],
  ])("%s", (_, text, message) => {
    expect(refusalOf(text)).toMatch(message);
    expect(refusalOf(text)).not.toContain(formatCurveKey(secretKey).slice(0, 10));
  });
});
