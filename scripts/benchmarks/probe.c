/* The child of the hand-over benchmark: appends "START END\n" (CLOCK_MONOTONIC, nanoseconds) to the file in argv[1]. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
  long long start = now();
  char line[64];
  int file = argc > 1 ? open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
  if (file < 0) return 1;
  int length = snprintf(line, sizeof line, "%lld %lld\n", start, now());
  return write(file, line, length) == length ? 0 : 1;
}
