/*
 * RabbitMQ for pubsub_peer.c: AMQP 0-9-1, a durable queue, persistent messages with publisher confirms, and a consumer that
 * acknowledges all it has got by one word.
 */
#define AMQP_METHOD 1
#define AMQP_HEADER 2
#define AMQP_BODY 3
#define METHOD(class, method) ((uint32_t)(class) << 16 | (method))
#define FRAME_MAX 131072 /* what RabbitMQ offers */

static uint64_t rabbit_tag, rabbit_unacked;

static void amqp_number(struct link *l, int bytes, uint64_t value) {
  unsigned char b[8];
  for (int at = 0; at < bytes; at++) b[at] = value >> (8 * (bytes - 1 - at));
  put(l, b, bytes);
}

static void amqp_word(struct link *l, const char *word) {
  amqp_number(l, 1, strlen(word));
  put(l, word, strlen(word));
}

static uint64_t amqp_read(const unsigned char *b, int bytes) {
  uint64_t value = 0;
  for (int at = 0; at < bytes; at++) value = value << 8 | b[at];
  return value;
}

/* Begins a frame, and says where its length is to stand. */
static size_t amqp_begin(struct link *l, int type, int channel) {
  amqp_number(l, 1, type);
  amqp_number(l, 2, channel);
  amqp_number(l, 4, 0);
  return l->out_to;
}

static void amqp_end(struct link *l, size_t start) {
  size_t end = l->out_to;
  l->out_to = start - 4;
  amqp_number(l, 4, end - start);
  l->out_to = end;
  amqp_number(l, 1, 0xce);
}

static size_t amqp_method(struct link *l, int channel, uint32_t method) {
  size_t start = amqp_begin(l, AMQP_METHOD, channel);
  amqp_number(l, 4, method);
  return start;
}

/* The payload of the next frame; NULL while it is not here whole. */
static unsigned char *amqp_next(struct link *l, int *type, size_t *count) {
  unsigned char *b = (unsigned char *)l->in + l->from;
  size_t there = l->to - l->from;
  if (there < 7) return NULL;
  *type = b[0];
  *count = amqp_read(b + 3, 4);
  if (there < *count + 8) return NULL;
  l->from += *count + 8;
  return b + 7;
}

/* Sends what was written, and waits for this method. */
static void amqp_call(struct link *l, uint32_t wanted) {
  int type;
  size_t count;
  unsigned char *b;
  flush(l);
  while ((b = amqp_next(l, &type, &count)) == NULL) fill(l, 0);
  if (type != AMQP_METHOD || amqp_read(b, 4) != wanted) fail("rabbitmq answered something else", count > 7 ? (char *)b + 7 : "");
}

static void amqp_open(struct link *l) {
  static const char login[] = "\0guest\0guest";
  put(l, "AMQP\0\0\x09\x01", 8);
  amqp_call(l, METHOD(10, 10));
  size_t start = amqp_method(l, 0, METHOD(10, 11)); /* start-ok */
  amqp_number(l, 4, 0);
  amqp_word(l, "PLAIN");
  amqp_number(l, 4, sizeof login - 1);
  put(l, login, sizeof login - 1);
  amqp_word(l, "en_US");
  amqp_end(l, start);
  amqp_call(l, METHOD(10, 30));
  start = amqp_method(l, 0, METHOD(10, 31)); /* tune-ok: one channel, no heartbeat */
  amqp_number(l, 2, 1);
  amqp_number(l, 4, FRAME_MAX);
  amqp_number(l, 2, 0);
  amqp_end(l, start);
  start = amqp_method(l, 0, METHOD(10, 40)); /* open */
  amqp_word(l, "/");
  amqp_number(l, 2, 0);
  amqp_end(l, start);
  amqp_call(l, METHOD(10, 41));
  start = amqp_method(l, 1, METHOD(20, 10));
  amqp_word(l, "");
  amqp_end(l, start);
  amqp_call(l, METHOD(20, 11));
}

static void rabbit_begin(void) {
  amqp_open(&publisher);
  amqp_open(&consumer);
  size_t start = amqp_method(&publisher, 1, METHOD(85, 10)); /* confirm.select */
  amqp_number(&publisher, 1, 0);
  amqp_end(&publisher, start);
  amqp_call(&publisher, METHOD(85, 11));
  start = amqp_method(&consumer, 1, METHOD(50, 10)); /* queue.declare: durable */
  amqp_number(&consumer, 2, 0);
  amqp_word(&consumer, token);
  amqp_number(&consumer, 1, 2);
  amqp_number(&consumer, 4, 0);
  amqp_end(&consumer, start);
  amqp_call(&consumer, METHOD(50, 11));
  start = amqp_method(&consumer, 1, METHOD(60, 10)); /* basic.qos: so many unacknowledged */
  amqp_number(&consumer, 4, 0);
  amqp_number(&consumer, 2, 4 * BATCH);
  amqp_number(&consumer, 1, 0);
  amqp_end(&consumer, start);
  amqp_call(&consumer, METHOD(60, 11));
  start = amqp_method(&consumer, 1, METHOD(60, 20)); /* basic.consume */
  amqp_number(&consumer, 2, 0);
  amqp_word(&consumer, token);
  amqp_word(&consumer, "");
  amqp_number(&consumer, 1, 0);
  amqp_number(&consumer, 4, 0);
  amqp_end(&consumer, start);
  amqp_call(&consumer, METHOD(60, 21));
}

static void rabbit_put(uint64_t number) {
  (void)number; /* confirms count from 1 on, as the messages do */
  size_t start = amqp_method(&publisher, 1, METHOD(60, 40));
  amqp_number(&publisher, 2, 0);
  amqp_word(&publisher, "");
  amqp_word(&publisher, token);
  amqp_number(&publisher, 1, 0);
  amqp_end(&publisher, start);
  start = amqp_begin(&publisher, AMQP_HEADER, 1);
  amqp_number(&publisher, 4, METHOD(60, 0));
  amqp_number(&publisher, 8, body_bytes);
  amqp_number(&publisher, 2, 0x1000); /* delivery-mode: persistent */
  amqp_number(&publisher, 1, 2);
  amqp_end(&publisher, start);
  start = amqp_begin(&publisher, AMQP_BODY, 1);
  put(&publisher, body, body_bytes);
  amqp_end(&publisher, start);
}

static void rabbit_confirmed(const unsigned char *b) {
  uint64_t tag = amqp_read(b + 4, 8);
  if (b[12] & 1) while (acked <= tag) was_acked(acked);
  else was_acked(tag);
}

static int rabbit_answer(struct link *l) {
  int type;
  size_t count;
  unsigned char *b = amqp_next(l, &type, &count);
  if (b == NULL) {
    if (l != &consumer || rabbit_unacked == 0) return 0;
    size_t start = amqp_method(l, 1, METHOD(60, 80));
    amqp_number(l, 8, rabbit_unacked);
    amqp_number(l, 1, 1); /* and all before it */
    amqp_end(l, start);
    rabbit_unacked = 0;
    return 0;
  }
  uint32_t method = type == AMQP_METHOD ? amqp_read(b, 4) : 0;
  if (method == METHOD(60, 80)) rabbit_confirmed(b);
  else if (method == METHOD(60, 60)) rabbit_tag = amqp_read(b + 5 + b[4], 8);
  else if (type == AMQP_BODY) {
    was_received((char *)b, count);
    rabbit_unacked = rabbit_tag;
  } else if (type == AMQP_METHOD) fail("rabbitmq", count > 7 ? (char *)b + 7 : "a method that was not expected");
  return 1;
}
