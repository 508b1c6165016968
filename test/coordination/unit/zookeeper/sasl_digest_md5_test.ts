import { describe, expect, test } from "bun:test";
import { startSaslDigestMd5 } from "../../../../src/protocols/zookeeper/sasl_digest_md5.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (token: Uint8Array | null) => new TextDecoder().decode(token ?? new Uint8Array(0));

// RFC 2831, section 4, the first example.
const challenge = 'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8';
const exchange = () => startSaslDigestMd5("chris:secret", "OA6MHXh6VqTrRk", { digestUri: "imap/elwood.innosoft.com" });

describe("SASL DIGEST-MD5", () => {
  test("answers the challenge of RFC 2831 as printed there", () => {
    expect(text(exchange().next(bytes(challenge)))).toContain("response=d388dad90d4bbd760a152321f2143af7");
  });

  test("ends when the server has proved that it knows the password too", () => {
    const own = exchange();
    own.next(bytes(challenge));
    expect(own.next(bytes("rspauth=ea40f60335c427b5527b84dbabcdfffd"))).toBeNull();
  });

  test("does not believe another proof", () => {
    const own = exchange();
    own.next(bytes(challenge));
    expect(() => own.next(bytes("rspauth=00000000000000000000000000000000"))).toThrow("did not prove");
  });

  test("keeps quotes, commas and colons of a password", () => {
    const own = startSaslDigestMd5('a"d\\a:x:"y, z"', "n");
    expect(text(own.next(bytes('realm="r",nonce="n,\\"1"')))).toContain(
      'username="a\\"d\\\\a",realm="r",nonce="n,\\"1"',
    );
  });

  test("refuses a challenge without a nonce", () => {
    expect(() => exchange().next(bytes('realm="r"'))).toThrow(expect.objectContaining({ code: "PROTOCOL" }));
  });
});
