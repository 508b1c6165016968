import { expect, test } from "bun:test";
import { chooseHttpProxy, type ProxyEnvironment } from "../../../../src/base/http/proxy_choice.ts";

const through = (url: string, env: ProxyEnvironment) => {
  const proxy = chooseHttpProxy(new URL(url).origin, env);
  return proxy === null ? null : `${proxy.host}:${proxy.port}`;
};

test("HTTP_PROXY is for http, HTTPS_PROXY for https; small letters come first; an empty one counts as not set", () => {
  const env = { HTTP_PROXY: "http://p1:3128", HTTPS_PROXY: "p2:8080/" };
  expect(through("http://backend/", env)).toBe("p1:3128");
  expect(through("https://backend/", env)).toBe("p2:8080");
  expect(through("http://backend/", { ...env, http_proxy: "http://p3" })).toBe("p3:80");
  expect(through("http://backend/", { ...env, http_proxy: "" })).toBe("p1:3128");
  expect(through("https://backend/", { HTTP_PROXY: "http://p1" })).toBeNull();
  expect(through("http://backend/", { HTTP_PROXY: "http://[::1]:3128" })).toBe("::1:3128");
});

test("a message names the proxy and the variable, never the password; the proxy gets both", () => {
  const proxy = chooseHttpProxy("http://backend", { http_proxy: "http://us%40er:s3cret@p1:3128" });
  expect(proxy).toMatchObject({ name: "the proxy http://p1:3128 (http_proxy)" });
  expect(Buffer.from(proxy?.authorization?.slice("Basic ".length) ?? "", "base64").toString()).toBe("us@er:s3cret");
});

test("what is no HTTP proxy is an error with the variable and without its value", () => {
  for (const value of ["socks5://s3cret@p1:1080", "https://p1", "http://", "http://s3cret:x", "http://p1:0"]) {
    const told = () => through("http://backend/", { HTTP_PROXY: value });
    expect(told).toThrow("HTTP_PROXY is not the URL of an HTTP proxy; expected http://HOST:PORT");
    expect(told).not.toThrow("s3cret");
  }
});

test("requests to this machine use no proxy", () => {
  const env = { HTTP_PROXY: "http://p1", HTTPS_PROXY: "http://p1" };
  for (
    const host of [
      "localhost",
      "LOCALHOST",
      "a.localhost",
      "127.0.0.1",
      "127.9.9.9",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "localhost.",
      "ip6-localhost",
      "localhost.localdomain",
      "0.0.0.0",
      "[::]",
      "0x7f.1",
    ]
  ) {
    for (const scheme of ["http", "https"]) {
      expect([host, through(`${scheme}://${host}:9/`, env)]).toEqual([host, null]);
    }
  }
  for (const host of ["localhost.example", "notlocalhost", "127.example", "[::2]", "128.0.0.1"]) {
    expect([host, through(`http://${host}/`, env)]).toEqual([host, "p1:80"]);
  }
});

test("NO_PROXY lists names with their subdomains, addresses, networks, ports, or all", () => {
  const isDirect = (url: string, list: string) => through(url, { HTTP_PROXY: "http://p1", NO_PROXY: list }) === null;
  for (
    const list of [
      "example.org",
      ".example.org",
      "*.example.org",
      "a, EXAMPLE.org ,b",
      "*",
      "a example.org",
      "example.org:80",
    ]
  ) {
    expect([list, isDirect("http://x.example.org/", list)]).toEqual([list, true]);
  }
  for (
    const list of ["", "example.org:8080", "le.org", "org.example", "x", "http://x.example.org", ".", "10.0.0.0/8"]
  ) {
    expect([list, isDirect("http://x.example.org/", list)]).toEqual([list, false]);
  }
  expect(isDirect("http://10.9.8.7/", "192.168.0.0/16,10.0.0.0/8")).toBe(true);
  expect(isDirect("http://11.9.8.7/", "10.0.0.0/8")).toBe(false);
  expect(isDirect("http://10.9.8.7:81/", "10.9.8.7:81")).toBe(true);
  expect(isDirect("http://[fd00::1]:81/", "[fd00::1]:81")).toBe(true);
  expect(isDirect("http://[fd00::1]/", "fd00::1")).toBe(true);
  expect(isDirect("http://[fd00::1]/", "fd00:0::1")).toBe(true);
  expect(isDirect("http://[fd00::1]/", "fd00::/8")).toBe(true);
  expect(isDirect("http://[fd00::1]/", "fe00::/8,10.0.0.0/99,x/8")).toBe(false);
  expect(isDirect("http://bücher.example./", "bücher.example")).toBe(true);
  expect(through("http://x.example.org/", { HTTP_PROXY: "http://p1", no_proxy: "other", NO_PROXY: "*" })).toBe("p1:80");
});

test("a CGI program takes no HTTP_PROXY, which its client can set", () => {
  expect(through("http://backend/", { HTTP_PROXY: "http://evil", REQUEST_METHOD: "GET" })).toBeNull();
  expect(through("http://backend/", { http_proxy: "http://p1", REQUEST_METHOD: "GET" })).toBe("p1:80");
});
