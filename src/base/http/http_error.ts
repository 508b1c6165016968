/** An error that the HTTP server sends to the client as the response to a request. */

export class HttpError extends Error {
  /** The status of the response, such as 404. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "HttpError";
    this.status = status;
  }
}
