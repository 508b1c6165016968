/**
 * The environment variables that configure outgoing HTTP. They are conventions of other programs. baton ignores all
 * other variables for this purpose.
 */

export const httpProxyVariables = {
  HTTP_PROXY: "URL of the HTTP proxy for requests to http:// addresses, such as http://USER:PASSWORD@proxy:3128; " +
    "also http_proxy, which comes first. " +
    "HTTP_PROXY has no effect where REQUEST_METHOD is set, because a client of a CGI program can set it",
  HTTPS_PROXY: "the same for https:// addresses, through a tunnel (CONNECT); also https_proxy, which comes first",
  NO_PROXY:
    "hosts that are reached without a proxy, with commas between them: names with their subdomains, addresses, " +
    "networks such as 10.0.0.0/8 and fd00::/8, each also with :PORT, or * for all; also no_proxy, which comes first",
} as const;

/**
 * Variables that runtimes and TLS libraries obey, and that baton ignores. The help lists these variables, so that users
 * do not expect an effect.
 */
export const ignoredTlsVariables = [
  "NODE_TLS_REJECT_UNAUTHORIZED",
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
] as const;
