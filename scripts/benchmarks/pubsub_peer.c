/*
 * A publisher and a consumer in one thread, in C, without a library: pubsub_peer KIND HOST PORT BYTES OUTSTANDING MS [TOPIC].
 * KIND: baton (a proxy; each message is a put), baton-batches (what can be put at once is one put, up to 64 messages, as
 * baton's own client does it), redis (a stream with a consumer group), nats (JetStream: a stream in a file, a pull consumer),
 * rabbitmq (a durable queue with publisher confirms).
 * A message counts when its publisher was told that it is stored, and its consumer has it; so many are on their way. The
 * consumer acknowledges all it gets. Prints: messages a second, p50 and p99 of a message's whole way, p50 and p99 of the
 * time until its publisher was told, all in microseconds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RING 65536
#define IN_BYTES (8 << 20)
#define BATCH 256
#define PUT_BATCH 64
#define WARM_MS 1000
#define SAMPLES_MAX 4000000

struct link {
  int fd;
  char *in, *out;
  size_t from, to, out_from, out_to, out_size;
};

static struct link publisher, consumer;
static size_t body_bytes, outstanding;
static char body[1 << 20], token[32];
static uint64_t sent = 1, acked = 1, received = 1; /* the next one's number */
static char is_acked[RING];
static double sent_at[RING];
static size_t put_count[RING]; /* messages of the put that begins with this one */
static double *ways, *acks;
static size_t way_count, ack_count;
static int is_measuring;

static void fail(const char *what, const char *more) {
  fprintf(stderr, "%s: %.300s\n", what, more);
  exit(1);
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void open_link(struct link *l, const char *host, int port) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  int yes = 1;
  inet_pton(AF_INET, host, &to.sin_addr);
  l->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(l->fd, (struct sockaddr *)&to, sizeof to) != 0) fail("connect", strerror(errno));
  setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  l->in = malloc(IN_BYTES);
  l->out_size = 8 << 20;
  l->out = malloc(l->out_size);
}

static void put(struct link *l, const void *bytes, size_t count) {
  if (l->out_to + count > l->out_size) fail("too much is to be sent", "");
  memcpy(l->out + l->out_to, bytes, count);
  l->out_to += count;
}

static void print(struct link *l, const char *format, ...) {
  va_list words;
  va_start(words, format);
  l->out_to += vsnprintf(l->out + l->out_to, l->out_size - l->out_to, format, words);
  va_end(words);
}

static void flush(struct link *l) {
  while (l->out_from < l->out_to) {
    ssize_t n = send(l->fd, l->out + l->out_from, l->out_to - l->out_from, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) return;
    if (n < 0) fail("send", strerror(errno));
    l->out_from += n;
  }
  l->out_from = l->out_to = 0;
}

static void fill(struct link *l, int flags) {
  if (l->from == l->to) l->from = l->to = 0;
  if (l->to > IN_BYTES / 2) {
    memmove(l->in, l->in + l->from, l->to - l->from);
    l->to -= l->from;
    l->from = 0;
  }
  ssize_t n = recv(l->fd, l->in + l->to, IN_BYTES - l->to, flags);
  if (n == 0) fail("the connection", "was closed");
  if (n < 0 && errno == EAGAIN) return;
  if (n < 0) fail("recv", strerror(errno));
  l->to += n;
}

/* What the publisher was told, and what the consumer has got. */
static void was_acked(uint64_t number) {
  if (is_measuring && ack_count < SAMPLES_MAX) acks[ack_count++] = now_us() - sent_at[number % RING];
  is_acked[number % RING] = 1;
  while (acked < sent && is_acked[acked % RING]) acked++;
}

static void was_received(const char *bytes, size_t count) {
  uint64_t number;
  memcpy(&number, bytes, sizeof number);
  if (count != body_bytes || number != received) fail("a message", "is lost, doubled, or out of order");
  if (is_measuring && way_count < SAMPLES_MAX) ways[way_count++] = now_us() - sent_at[number % RING];
  received++;
}

/* ZMTP 3.0, NULL, DEALER. */
static void zmtp_frame(struct link *l, int more, size_t count) {
  unsigned char head[9] = {(more ? 1 : 0) | (count > 255 ? 2 : 0)};
  if (count <= 255) head[1] = count;
  for (int at = 0; count > 255 && at < 8; at++) head[1 + at] = (uint64_t)count >> (8 * (7 - at));
  put(l, head, count > 255 ? 9 : 2);
}

/* The next frame; NULL while it is not here whole. */
static char *zmtp_next(struct link *l, size_t *at, size_t *count, int *more) {
  unsigned char *b = (unsigned char *)l->in + *at;
  size_t there = l->to - *at, head = 2;
  if (there < 2) return NULL;
  *count = b[1];
  if (b[0] & 2) {
    head = 9;
    if (there < 9) return NULL;
    *count = 0;
    for (int i = 1; i < 9; i++) *count = *count << 8 | b[i];
  }
  if (there < head + *count) return NULL;
  *more = b[0] & 1;
  *at += head + *count;
  return (char *)b + head;
}

static void zmtp_greet(struct link *l) {
  char greeting[64] = {(char)0xff, [9] = 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
  static const char ready[] = "\x04\x1c\x05READY\x0bSocket-Type\0\0\0\x06" "DEALER";
  put(l, greeting, 64);
  flush(l);
  while (l->to < 64) fill(l, 0);
  put(l, ready, sizeof ready - 1);
  flush(l);
  while (l->to < 66 || l->to < 66 + (size_t)(unsigned char)l->in[65]) fill(l, 0); /* its READY is short */
  l->from = 66 + (unsigned char)l->in[65];
}

static void baton_say(struct link *l, uint64_t number, const char *header, size_t extra) {
  size_t length = strlen(header);
  zmtp_frame(l, 1, sizeof number);
  put(l, &number, sizeof number);
  zmtp_frame(l, 1, 0);
  zmtp_frame(l, 0, length + extra);
  put(l, header, length);
}

static void baton_get(uint64_t last) {
  char header[256];
  if (last == 0) snprintf(header, sizeof header, "GET reader %s -1\r\nsession: 1/r\r\nmax: %d\r\nwait-ms: 1000\r\n\r\n", token, BATCH);
  else snprintf(header, sizeof header, "GET reader %s %llu\r\nsession: 1/r\r\nmax: %d\r\nwait-ms: 1000\r\n\r\n", token, (unsigned long long)last, BATCH);
  baton_say(&consumer, 0, header, 0);
}

static void baton_put(uint64_t number) {
  char header[256];
  snprintf(header, sizeof header, "PUT writer %s %llu\r\nsession: 1/w\r\nfirst-unacked: %llu\r\n\r\n", token,
           (unsigned long long)number, (unsigned long long)acked);
  put_count[number % RING] = 1;
  baton_say(&publisher, number, header, body_bytes);
  put(&publisher, body, body_bytes);
}

static void stamp(uint64_t number) {
  memcpy(body, &number, sizeof number);
  is_acked[number % RING] = 0;
  sent_at[number % RING] = now_us();
}

/* The first one is stamped. */
static void baton_put_batch(uint64_t first, size_t count) {
  char header[256];
  snprintf(header, sizeof header, "PUT writer %s %llu\r\nsession: 1/w\r\nfirst-unacked: %llu\r\ncount: %zu\r\n\r\n", token,
           (unsigned long long)first, (unsigned long long)acked, count);
  put_count[first % RING] = count;
  zmtp_frame(&publisher, 1, sizeof first);
  put(&publisher, &first, sizeof first);
  zmtp_frame(&publisher, 1, 0);
  zmtp_frame(&publisher, 1, strlen(header));
  put(&publisher, header, strlen(header));
  for (size_t at = 0; at < count; at++) {
    if (at > 0) stamp(first + at);
    zmtp_frame(&publisher, at + 1 < count, body_bytes);
    put(&publisher, body, body_bytes);
  }
}

static int is_status(const char *frame, size_t count, const char *code) {
  const char *end = frame + count, *at = frame;
  for (int words = 0; words < 2 && at < end; at++) if (*at == ' ') words++;
  return (size_t)(end - at) > strlen(code) && memcmp(at, code, strlen(code)) == 0;
}

static uint64_t baton_last;

/* One whole answer, or 0. */
static int baton_answer(struct link *l) {
  size_t at = l->from, count;
  int more = 1, frames = 0;
  uint64_t number = 0, before = received;
  char *header = NULL;
  size_t header_bytes = 0;
  /* Whole or not at all: a first pass to its end. */
  for (size_t end = at; more;) if (zmtp_next(l, &end, &count, &more) == NULL) return 0;
  for (more = 1; more; frames++) {
    char *frame = zmtp_next(l, &at, &count, &more);
    if (frames == 0) memcpy(&number, frame, sizeof number);
    if (frames == 2) header = frame, header_bytes = count;
    if (frames > 2) was_received(frame, count);
  }
  l->from = at;
  if (l == &publisher) {
    if (!is_status(header, header_bytes, "OK")) fail("a put was answered", header);
    for (size_t at = 0, count = put_count[number % RING]; at < count; at++) was_acked(number + at);
  } else if (number == 0) {
    if (!is_status(header, header_bytes, "OK") && !is_status(header, header_bytes, "NO_MESSAGE")) fail("a get was answered", header);
    baton_last += received - before;
    baton_get(baton_last);
  }
  return 1;
}

static void baton_begin(void) {
  char header[256];
  zmtp_greet(&publisher);
  zmtp_greet(&consumer);
  snprintf(header, sizeof header, "SUBSCRIBE reader %s\r\nsession: 1/r\r\nop: 1\r\n\r\n", token);
  baton_say(&consumer, 1, header, 0);
  flush(&consumer);
  while (!baton_answer(&consumer)) fill(&consumer, 0);
  baton_get(0);
}

/* Redis: commands are arrays of strings; replies are skipped or counted. */
static int resp_skip(struct link *l, size_t *at, void (*string)(const char *, size_t, int), int depth) {
  char *b = l->in + *at, *end = l->to > *at ? memchr(b, '\n', l->to - *at) : NULL;
  if (end == NULL) return 0;
  size_t head = end - b + 1;
  long count = atol(b + 1);
  *at += head;
  if (b[0] == '-') fail("redis", b);
  if (b[0] == '$' && count >= 0) {
    if (l->to - *at < (size_t)count + 2) return 0;
    if (string != NULL) string(l->in + *at, count, depth);
    *at += count + 2;
  }
  if (b[0] == '*') for (long i = 0; i < count; i++) if (!resp_skip(l, at, string, depth + 1)) return 0;
  return 1;
}

static char ids[BATCH][40];
static int id_count;

static void redis_string(const char *bytes, size_t count, int depth) {
  if (depth == 4 && id_count < BATCH) snprintf(ids[id_count++], 40, "%.*s", (int)count, bytes);
  if (depth == 5 && count == body_bytes) was_received(bytes, count);
}

static void redis_read(void) {
  if (id_count > 0) {
    print(&consumer, "*%d\r\n$4\r\nXACK\r\n$%zu\r\n%s\r\n$1\r\ng\r\n", 3 + id_count, strlen(token), token);
    for (int i = 0; i < id_count; i++) print(&consumer, "$%zu\r\n%s\r\n", strlen(ids[i]), ids[i]);
  }
  print(&consumer, "*11\r\n$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$1\r\ng\r\n$1\r\nc\r\n$5\r\nCOUNT\r\n$3\r\n%d\r\n$5\r\nBLOCK\r\n$1\r\n0\r\n"
        "$7\r\nSTREAMS\r\n$%zu\r\n%s\r\n$1\r\n>\r\n", BATCH, strlen(token), token);
}

static int redis_answer(struct link *l) {
  size_t at = l->from;
  if (l == &publisher) {
    if (!resp_skip(l, &at, NULL, 0)) return 0;
    l->from = at;
    was_acked(acked);
    return 1;
  }
  if (!resp_skip(l, &at, NULL, 0)) return 0;
  if (l->in[l->from] == '*') {
    size_t again = l->from;
    id_count = 0;
    resp_skip(l, &again, redis_string, 0);
    redis_read();
  }
  l->from = at;
  return 1;
}

static void redis_put(uint64_t number) {
  (void)number;
  print(&publisher, "*5\r\n$4\r\nXADD\r\n$%zu\r\n%s\r\n$1\r\n*\r\n$1\r\nd\r\n$%zu\r\n", strlen(token), token, body_bytes);
  put(&publisher, body, body_bytes);
  put(&publisher, "\r\n", 2);
}

static void redis_begin(void) {
  print(&consumer, "*6\r\n$6\r\nXGROUP\r\n$6\r\nCREATE\r\n$%zu\r\n%s\r\n$1\r\ng\r\n$1\r\n$\r\n$8\r\nMKSTREAM\r\n", strlen(token), token);
  flush(&consumer);
  size_t at = 0;
  while (fill(&consumer, 0), at = consumer.from, !resp_skip(&consumer, &at, NULL, 0)) {}
  consumer.from = at;
  redis_read();
}

/* NATS: a publisher's acknowledgement comes to an inbox with the message's number at its end. */
static int is_nats_asking;

static void nats_fetch(void) {
  char ask[64];
  int length = snprintf(ask, sizeof ask, "{\"batch\":%d,\"expires\":1000000000}", BATCH);
  print(&consumer, "PUB $JS.API.CONSUMER.MSG.NEXT.%s.c in %d\r\n%s\r\n", token, length, ask);
}

static int nats_fetched;

static int nats_answer(struct link *l) {
  char *b = l->in + l->from, *end = l->to > l->from ? memchr(b, '\n', l->to - l->from) : NULL;
  if (end == NULL) return 0;
  size_t head = end - b + 1, bytes = 0, skip = 0;
  char subject[128] = "", reply[192] = "";
  if (b[0] == '-') fail("nats", b);
  if (strncmp(b, "PING", 4) == 0) print(l, "PONG\r\n");
  if (strncmp(b, "MSG", 3) == 0) {
    if (sscanf(b, "MSG %127s %*s %191s %zu", subject, reply, &bytes) < 3) reply[0] = 0, sscanf(b, "MSG %127s %*s %zu", subject, &bytes);
  } else if (strncmp(b, "HMSG", 4) == 0) {
    if (sscanf(b, "HMSG %127s %*s %191s %zu %zu", subject, reply, &skip, &bytes) < 4) reply[0] = 0, sscanf(b, "HMSG %127s %*s %zu %zu", subject, &skip, &bytes);
  }
  if (bytes > 0 && l->to - l->from < head + bytes + 2) return 0;
  if (bytes > 0 && is_nats_asking) {
    if (memmem(b + head, bytes, "\"error\"", 7) != NULL) fail("nats", b + head);
    is_nats_asking = 0;
  } else if (bytes > 0 && l == &publisher) {
    if (memmem(b + head, bytes, "\"error\"", 7) != NULL) fail("nats", b + head);
    was_acked(strtoull(strrchr(subject, '.') + 1, NULL, 10));
  } else if (bytes > 0 && reply[0] != 0) {
    was_received(b + head + skip, bytes - skip);
    print(l, "PUB %s 4\r\n+ACK\r\n", reply);
    if (++nats_fetched == BATCH) nats_fetched = 0, nats_fetch();
  } else if (bytes > 0 && l == &consumer) nats_fetched = 0, nats_fetch(); /* its time was over */
  l->from += head + (bytes > 0 ? bytes + 2 : 0);
  return 1;
}

static void nats_ask(const char *subject, const char *what) {
  is_nats_asking = 1;
  print(&consumer, "PUB %s in %zu\r\n%s\r\n", subject, strlen(what), what);
  flush(&consumer);
  while (is_nats_asking) if (!nats_answer(&consumer)) fill(&consumer, 0);
}

static void nats_begin(void) {
  char what[512], subject[128];
  print(&publisher, "CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB p.* 1\r\n");
  print(&consumer, "CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB in 1\r\n");
  snprintf(subject, sizeof subject, "$JS.API.STREAM.CREATE.%s", token);
  snprintf(what, sizeof what, "{\"name\":\"%s\",\"subjects\":[\"s.%s\"],\"storage\":\"file\",\"retention\":\"limits\"}", token, token);
  nats_ask(subject, what);
  snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DURABLE.CREATE.%s.c", token);
  snprintf(what, sizeof what, "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"c\",\"ack_policy\":\"explicit\",\"max_ack_pending\":65536}}", token);
  nats_ask(subject, what);
  nats_fetch();
}

static void nats_put(uint64_t number) {
  char id[64];
  int length = snprintf(id, sizeof id, "NATS/1.0\r\nNats-Msg-Id: %llu\r\n\r\n", (unsigned long long)number);
  print(&publisher, "HPUB s.%s p.%llu %d %zu\r\n%s", token, (unsigned long long)number, length, length + body_bytes, id);
  put(&publisher, body, body_bytes);
  put(&publisher, "\r\n", 2);
}

#include "pubsub_peer_rabbit.h"

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double rank(double *values, size_t count, double share) {
  return count == 0 ? 0 : values[(size_t)((count - 1) * share)];
}

int main(int argc, char **argv) {
  if (argc != 7 && argc != 8) fail("usage", "pubsub_peer KIND HOST PORT BYTES OUTSTANDING MS [TOPIC]");
  const char *kind = argv[1];
  int is_batched = strcmp(kind, "baton-batches") == 0, is_baton = is_batched || strcmp(kind, "baton") == 0, is_redis = strcmp(kind, "redis") == 0;
  int is_rabbit = strcmp(kind, "rabbitmq") == 0;
  int (*answer)(struct link *) = is_baton ? baton_answer : is_redis ? redis_answer : is_rabbit ? rabbit_answer : nats_answer;
  void (*put_one)(uint64_t) = is_baton ? baton_put : is_redis ? redis_put : is_rabbit ? rabbit_put : nats_put;
  body_bytes = strtoul(argv[4], NULL, 10);
  outstanding = strtoul(argv[5], NULL, 10);
  double for_us = atof(argv[6]) * 1e3;
  if (body_bytes < 8 || body_bytes > sizeof body || outstanding > 4096) fail("usage", "8 bytes to 1 MiB, 4096 outstanding at most");
  memset(body, 'B', sizeof body);
  if (argc == 8) snprintf(token, sizeof token, "%s", argv[7]);
  else snprintf(token, sizeof token, "t%llx", (unsigned long long)now_us());
  ways = malloc(SAMPLES_MAX * sizeof *ways);
  acks = malloc(SAMPLES_MAX * sizeof *acks);
  open_link(&publisher, argv[2], atoi(argv[3]));
  open_link(&consumer, argv[2], atoi(argv[3]));
  (is_baton ? baton_begin : is_redis ? redis_begin : is_rabbit ? rabbit_begin : nats_begin)();
  double start = now_us(), measured = 0, end = start + WARM_MS * 1e3 + for_us;
  uint64_t first = 0;
  while (now_us() < end) {
    if (!is_measuring && now_us() - start > WARM_MS * 1e3) is_measuring = 1, measured = now_us(), first = received;
    uint64_t done = acked < received ? acked : received;
    while (sent - done < outstanding && publisher.out_to < (4 << 20)) {
      size_t room = outstanding - (sent - done), count = !is_batched ? 1 : room < PUT_BATCH ? room : PUT_BATCH;
      stamp(sent);
      if (count == 1) put_one(sent);
      else baton_put_batch(sent, count);
      sent += count;
    }
    flush(&publisher);
    flush(&consumer);
    struct pollfd both[2] = {{publisher.fd, POLLIN | (publisher.out_to ? POLLOUT : 0), 0}, {consumer.fd, POLLIN | (consumer.out_to ? POLLOUT : 0), 0}};
    if (poll(both, 2, 100) < 0) fail("poll", strerror(errno));
    for (int which = 0; which < 2; which++) {
      struct link *l = which == 0 ? &publisher : &consumer;
      if (!(both[which].revents & (POLLIN | POLLHUP))) continue;
      fill(l, MSG_DONTWAIT);
      while (answer(l)) {}
    }
  }
  double seconds = (now_us() - measured) / 1e6;
  qsort(ways, way_count, sizeof *ways, by_value);
  qsort(acks, ack_count, sizeof *acks, by_value);
  printf("%.0f %.0f %.0f %.0f %.0f\n", (received - first) / seconds, rank(ways, way_count, 0.5), rank(ways, way_count, 0.99),
         rank(acks, ack_count, 0.5), rank(acks, ack_count, 0.99));
  return 0;
}
