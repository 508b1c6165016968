/*
 * libzmq in C as a peer of the ZMTP benchmark: zmtp_peer ROLE ENDPOINT [ENDPOINT | BYTES MILLISECONDS]. zmtp_roles.ts
 * says what the roles do. With CURVE_SERVER, CURVE_PUBLIC and CURVE_SECRET in the environment, everything is encrypted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#define OUTSTANDING 256
#define ACK_BYTES 8
#define WARM_MS 1000
#define TRIPS_MAX 2000000

static void *context;

static void check(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "%s: %s\n", what, zmq_strerror(zmq_errno()));
  exit(1);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void *open_socket(int type, int is_server) {
  void *socket = zmq_socket(context, type);
  check(socket != NULL, "zmq_socket");
  int none = 0, yes = 1;
  zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
  const char *server = getenv("CURVE_SERVER");
  if (server == NULL) return socket;
  const char *public = getenv("CURVE_PUBLIC"), *secret = getenv("CURVE_SECRET");
  if (is_server) zmq_setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes);
  else check(zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server, 40) == 0, "the server's key");
  check(zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, public, 40) == 0, "the public key");
  check(zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, secret, 40) == 0, "the secret key");
  return socket;
}

static void *bound(int type, const char *endpoint) {
  void *socket = open_socket(type, 1);
  char real[256];
  size_t size = sizeof real;
  check(zmq_bind(socket, endpoint) == 0, endpoint);
  zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, real, &size);
  printf("%s\n", real);
  fflush(stdout);
  return socket;
}

static void *connected(int type, const char *endpoint) {
  void *socket = open_socket(type, 0);
  check(zmq_connect(socket, endpoint) == 0, endpoint);
  return socket;
}

static int receive(void *socket, zmq_msg_t *frame, int flags) {
  zmq_msg_init(frame);
  return zmq_msg_recv(frame, socket, flags) >= 0;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Answers every message: with its own body, or with the first octets of it. An envelope of one frame goes back. */
static void answer(void *socket, int has_envelope, size_t bytes_max) {
  for (;;) {
    zmq_msg_t envelope, body;
    if (has_envelope) check(receive(socket, &envelope, 0), "receive");
    check(receive(socket, &body, 0), "receive");
    if (has_envelope) check(zmq_msg_send(&envelope, socket, ZMQ_SNDMORE) >= 0, "send");
    if (zmq_msg_size(&body) <= bytes_max) {
      check(zmq_msg_send(&body, socket, 0) >= 0, "send");
    } else {
      check(zmq_send(socket, zmq_msg_data(&body), bytes_max, 0) >= 0, "send");
      zmq_msg_close(&body);
    }
  }
}

/* One message at a time; the median of the round trips in microseconds. */
static double round_trips(void *socket, const char *body, size_t bytes, double for_ms) {
  double *trips = malloc(TRIPS_MAX * sizeof *trips);
  size_t count = 0;
  double end = now_ms() + for_ms, start;
  while ((start = now_ms()) < end && count < TRIPS_MAX) {
    zmq_msg_t reply;
    check(zmq_send(socket, body, bytes, 0) >= 0, "send");
    check(receive(socket, &reply, 0), "receive");
    zmq_msg_close(&reply);
    trips[count++] = (now_ms() - start) * 1e3;
  }
  qsort(trips, count, sizeof *trips, by_value);
  double median = trips[count / 2];
  free(trips);
  return median;
}

/* 256 messages on their way; acknowledgements a second. */
static double window(void *socket, const char *body, size_t bytes, double for_ms) {
  long acked = 0, outstanding = 0;
  double start = now_ms(), end = start + for_ms, now = start;
  while (now < end || outstanding > 0) {
    while (now < end && outstanding < OUTSTANDING) {
      check(zmq_send(socket, body, bytes, 0) >= 0, "send");
      outstanding++;
    }
    zmq_msg_t ack;
    for (int flags = 0; receive(socket, &ack, flags); flags = ZMQ_DONTWAIT) {
      zmq_msg_close(&ack);
      outstanding--;
      acked++;
      if (outstanding == 0) break;
    }
    now = now_ms();
  }
  return acked * 1e3 / (now - start);
}

/* As many as go; messages a second, until the other end says that it has the last one. */
static double one_way(void *socket, const char *body, size_t bytes, double for_ms) {
  long sent = 0;
  double start = now_ms(), end = start + for_ms;
  while (sent % 64 != 0 || now_ms() < end) {
    check(zmq_send(socket, body, bytes, 0) >= 0, "send");
    sent++;
  }
  zmq_msg_t reply;
  check(zmq_send(socket, "", 0, 0) >= 0, "send");
  check(receive(socket, &reply, 0), "receive");
  zmq_msg_close(&reply);
  return sent * 1e3 / (now_ms() - start);
}

static void swallow(void *socket) {
  for (;;) {
    zmq_msg_t body;
    check(receive(socket, &body, 0), "receive");
    if (zmq_msg_size(&body) == 0) check(zmq_send(socket, "", 0, 0) >= 0, "send");
    zmq_msg_close(&body);
  }
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "version") == 0) {
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    printf("%d.%d.%d\n", major, minor, patch);
    return 0;
  }
  if (argc < 3) return 64;
  const char *role = argv[1], *endpoint = argv[2];
  context = zmq_ctx_new();
  if (strcmp(role, "rep") == 0) answer(bound(ZMQ_REP, endpoint), 0, (size_t)-1);
  if (strcmp(role, "echo") == 0) answer(bound(ZMQ_ROUTER, endpoint), 1, (size_t)-1);
  if (strcmp(role, "ack") == 0) answer(bound(ZMQ_ROUTER, endpoint), 1, ACK_BYTES);
  if (strcmp(role, "worker") == 0) answer(connected(ZMQ_DEALER, endpoint), 1, ACK_BYTES);
  if (strcmp(role, "sink") == 0) swallow(bound(ZMQ_DEALER, endpoint));
  if (argc < 4) return 64;
  if (strcmp(role, "proxy") == 0) {
    void *front = bound(ZMQ_ROUTER, endpoint);
    zmq_proxy(front, bound(ZMQ_DEALER, argv[3]), NULL);
    return 1;
  }
  if (argc < 5) return 64;
  size_t bytes = strtoul(argv[3], NULL, 10);
  double for_ms = strtod(argv[4], NULL);
  char *body = malloc(bytes);
  memset(body, 'x', bytes);
  double (*measure)(void *, const char *, size_t, double) = strcmp(role, "window") == 0 ? window
                                                          : strcmp(role, "source") == 0 ? one_way
                                                                                        : round_trips;
  void *socket = connected(strcmp(role, "req") == 0 ? ZMQ_REQ : ZMQ_DEALER, endpoint);
  measure(socket, body, bytes, WARM_MS);
  printf("%.3f\n", measure(socket, body, bytes, for_ms));
  return 0;
}
