/*
 * A library for LD_PRELOAD that makes a program's storage forgetful and faulty, for tests (storage_faults.ts is its other
 * half). Linux on x86-64 and arm64; one process at a time writes to a watched folder.
 *
 * How: SQLite inside Bun calls libc, but Bun's own node:fs makes its system calls without it, so names alone would not catch
 * them. The library therefore installs a seccomp filter that traps the calls below wherever they come from (SIGSYS), and does
 * them itself, marked by a number in the sixth argument, which none of them has.
 *
 * What it catches, of files below STORAGE_FAULTS_UNDER: open with O_CREAT or O_TRUNC, write, writev, pwrite, fsync, fdatasync,
 * ftruncate, fallocate, rename, link, unlink, mkdir, rmdir, in all their forms; with STORAGE_FAULTS_SOCKETS=1 also what is
 * sent to and received from sockets. Not: what is written through mmap (SQLite's -shm, which it makes anew after a crash),
 * pwritev, copy_file_range, truncate by path, sync_file_range.
 * Not for a program that executes others: the filter outlives exec, and what answers it does not.
 *
 * For each of them, in this order:
 *   counts it, in STORAGE_FAULTS/control;
 *   kills the process when it is the step that the control file names;
 *   fails it where the control file says so: with an errno, a write after part of its bytes if wanted;
 *   appends to STORAGE_FAULTS/journal what is needed to undo it, and only then does it.
 * A sync is a record in the journal too: nothing has to reach a disk. undo_journal.ts reads it when the process is dead.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

enum { MARK_LOW = 0x5fa017ed, MARK_HIGH = 0x0ba70b1e };
#define MARK ((long)(((uint64_t)MARK_HIGH << 32) | MARK_LOW))

/* What a call is: a bit each, the same as in storage_faults.ts. */
enum { WRITE = 1, SYNC = 2, RENAME = 4, TRUNCATE = 8, CREATE = 16, REMOVE = 32, FOLDER = 64, SEND = 128, RECEIVE = 256 };
enum { KINDS = 9, FAULTS = 4, FOREVER = UINT32_MAX };

/* Records of the journal. */
enum { R_WRITE = 1, R_TRUNCATE, R_SYNC, R_SYNC_FAILED, R_CREATE, R_RENAME, R_UNLINK, R_MKDIR, R_RMDIR };

struct fault {
  uint32_t kinds, error, skip, times, is_short, least; /* least: bytes of a write */
  char path[40]; /* how it ends; empty: any */
};

struct control {
  uint64_t magic, steps, kill_at, step_kinds, sequence, hits, syncs_lie, reserved;
  uint64_t counts[KINDS];
  char last_step[256];
  uint64_t padding;
  struct fault faults[FAULTS];
};

struct record {
  uint64_t kind, sequence, inode, folder, offset, length, old_size, old_length;
  uint32_t path_length, other_length;
};

static struct control *control;
static int journal = -1;
static const char *under;
static size_t under_length;
static char trash[PATH_MAX];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* A child between fork and exec has a copy of the mutex that nobody will give back: it does what it does unwatched. */
static pid_t owner;
/* Instead of the stack, which belongs to a program that may have little of it. Used with the mutex held. */
static char path_a[PATH_MAX], path_b[PATH_MAX], path_c[PATH_MAX];

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
static long marked(long number, long a, long b, long c, long d, long e) {
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = MARK;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
static long marked(long number, long a, long b, long c, long d, long e) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = MARK;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "storage_faults.c knows x86-64 and arm64"
#endif

static int status_of(int fd, struct stat *status) { return fstat(fd, status); }

/* Where the file is, in `path`; whether it is watched. */
static int watched(const char *path) {
  if (strncmp(path, under, under_length) != 0 || (path[under_length] != '/' && path[under_length] != 0)) return 0;
  size_t length = strlen(path);
  return length < 4 || strcmp(path + length - 4, "-shm") != 0;
}

static int path_of(int fd, char *path) {
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return 1;
}

/* A watched regular file or folder, its path in path_a. */
static int watched_fd(int fd, struct stat *status) {
  if (status_of(fd, status) != 0 || !(S_ISREG(status->st_mode) || S_ISDIR(status->st_mode))) return 0;
  return path_of(fd, path_a) && watched(path_a);
}

/* A path as a program gives it, made absolute. */
static int watched_at(int folder, const char *given, char *path) {
  if (given == NULL) return 0;
  if (given[0] == '/') {
    if (snprintf(path, PATH_MAX, "%s", given) >= PATH_MAX) return 0;
  } else {
    char *end = path;
    if (folder == AT_FDCWD ? getcwd(path, PATH_MAX) == NULL : !path_of(folder, path)) return 0;
    end += strlen(path);
    if (snprintf(end, PATH_MAX - (end - path), "/%s", given) >= PATH_MAX - (end - path)) return 0;
  }
  return watched(path);
}

static uint64_t folder_of(const char *path) {
  struct stat status;
  const char *slash = strrchr(path, '/');
  snprintf(path_c, sizeof path_c, "%.*s", slash == path ? 1 : (int)(slash - path), path);
  return stat(path_c, &status) == 0 ? status.st_ino : 0;
}

static int index_of(unsigned kind) { return __builtin_ctz(kind); }

static int ends_with(const char *path, const char *end) {
  size_t length = strlen(path), wanted = strlen(end);
  return length >= wanted && strcmp(path + length - wanted, end) == 0;
}

/* Counts, kills, or says with which errno the call is to fail; 0: not at all. `halved`: after half of a write of `length`. */
static int step(unsigned kind, const char *path, long length, int *halved) {
  __atomic_add_fetch(&control->counts[index_of(kind)], 1, __ATOMIC_SEQ_CST);
  if (control->step_kinds & kind) {
    uint64_t number = __atomic_add_fetch(&control->steps, 1, __ATOMIC_SEQ_CST);
    if (control->kill_at == 0 || number <= control->kill_at) {
      const char *name = strrchr(path, '/');
      snprintf(control->last_step, sizeof control->last_step, "%u %s", kind, name == NULL ? path : name + 1);
    }
    if (number == control->kill_at) {
      for (;;) kill(getpid(), SIGKILL);
    }
  }
  for (int at = 0; at < FAULTS; at++) {
    struct fault *fault = &control->faults[at];
    if (!(fault->kinds & kind) || fault->times == 0) continue;
    if (!ends_with(path, fault->path) || length < (long)fault->least) continue;
    if (fault->skip > 0) {
      fault->skip--;
      continue;
    }
    if (fault->times != FOREVER) fault->times--;
    control->hits++;
    if (halved != NULL && fault->is_short) *halved = 1;
    return (int)fault->error;
  }
  return 0;
}

static uint64_t next(void) { return __atomic_add_fetch(&control->sequence, 1, __ATOMIC_SEQ_CST); }

/* One write, so that records of several processes do not mix. What cannot be undone must not be done: it ends the process. */
static void append(struct record record, const char *path, const char *other, const void *old) {
  record.path_length = (uint32_t)strlen(path);
  record.other_length = (uint32_t)strlen(other);
  struct iovec parts[4] = {{&record, sizeof record}, {(void *)path, record.path_length},
                           {(void *)other, record.other_length}, {(void *)old, record.old_length}};
  long wanted = (long)(sizeof record + record.path_length + record.other_length + record.old_length);
  if (marked(SYS_writev, journal, (long)parts, 4, 0, 0) != wanted) abort();
}

/* Records the bytes of a file from `offset` on that a change of `length` bytes, or up to the end, takes away. */
static void keep(unsigned kind, int fd, const struct stat *status, uint64_t offset, uint64_t length, const char *path) {
  uint64_t size = (uint64_t)status->st_size, end = kind == R_TRUNCATE ? size : offset + length;
  if (end > size) end = size;
  struct record record = {.kind = kind, .sequence = next(), .inode = status->st_ino, .offset = offset, .length = length,
                          .old_size = size, .old_length = end > offset ? end - offset : 0};
  void *old = NULL;
  if (record.old_length > 0) {
    char link[40];
    int readable = fd;
    if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
      /* Closing it would end SQLite's locks, which it has on files that it opened to read and write. */
      snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
      readable = (int)marked(SYS_openat, AT_FDCWD, (long)link, O_RDONLY | O_CLOEXEC, 0, 0);
    }
    old = mmap(NULL, record.old_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (old == MAP_FAILED || pread(readable, old, record.old_length, (off_t)offset) != (ssize_t)record.old_length) abort();
    if (readable != fd) close(readable);
  }
  append(record, path, "", old);
  if (old != NULL) munmap(old, record.old_length);
}

static long bytes_in(const struct iovec *parts, long count) {
  long bytes = 0;
  for (long at = 0; at < count; at++) bytes += (long)parts[at].iov_len;
  return bytes;
}

/* write, writev, pwrite; `offset` -1: where the file is. */
static long do_write(long number, const long *a, long length, long offset) {
  struct stat status;
  int fd = (int)a[0], halved = 0;
  if (!watched_fd(fd, &status)) return marked(number, a[0], a[1], a[2], a[3], a[4]);
  int error = step(WRITE, path_a, length, &halved);
  /* The rest of a write that was cut is tried again, and then there is no room at all. */
  if (error != 0 && (!halved || number == SYS_writev || length < 512)) return -error;
  if (halved) length /= 2;
  if (offset < 0) offset = fcntl(fd, F_GETFL) & O_APPEND ? status.st_size : lseek(fd, 0, SEEK_CUR);
  keep(R_WRITE, fd, &status, (uint64_t)offset, (uint64_t)length, path_a);
  return marked(number, a[0], a[1], halved ? length : a[2], a[3], a[4]);
}

static long do_truncate(long number, const long *a, uint64_t size) {
  struct stat status;
  if (!watched_fd((int)a[0], &status)) return marked(number, a[0], a[1], a[2], a[3], a[4]);
  int error = step(TRUNCATE, path_a, 0, NULL);
  if (error != 0) return -error;
  if (number != SYS_fallocate || size > (uint64_t)status.st_size) keep(R_TRUNCATE, (int)a[0], &status, size, 0, path_a);
  return marked(number, a[0], a[1], a[2], a[3], a[4]);
}

static long do_sync(long number, const long *a) {
  struct stat status;
  if (!watched_fd((int)a[0], &status)) return marked(number, a[0], 0, 0, 0, 0);
  int error = step(SYNC, path_a, 0, NULL);
  struct record record = {.kind = error == 0 ? R_SYNC : R_SYNC_FAILED, .sequence = next(), .inode = status.st_ino};
  if (error != 0 || !control->syncs_lie) append(record, path_a, "", NULL);
  return -error;
}

static long do_open(const long *a) {
  int flags = (int)a[2];
  struct stat status;
  if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !watched_at((int)a[0], (char *)a[1], path_a)) {
    return marked(SYS_openat, a[0], a[1], a[2], a[3], 0);
  }
  int is_there = stat(path_a, &status) == 0;
  if (is_there && (flags & O_TRUNC) && !(flags & O_EXCL) && S_ISREG(status.st_mode) && status.st_size > 0) {
    int error = step(TRUNCATE, path_a, 0, NULL);
    if (error != 0) return -error;
    int fd = (int)marked(SYS_openat, AT_FDCWD, (long)path_a, O_RDONLY | O_CLOEXEC, 0, 0);
    if (fd < 0) return fd;
    keep(R_TRUNCATE, fd, &status, 0, 0, path_a);
    close(fd);
  }
  if (is_there || !(flags & O_CREAT)) return marked(SYS_openat, a[0], a[1], a[2], a[3], 0);
  int error = step(CREATE, path_a, 0, NULL);
  if (error != 0) return -error;
  long fd = marked(SYS_openat, a[0], a[1], a[2], a[3], 0);
  if (fd >= 0 && status_of((int)fd, &status) == 0) {
    struct record record = {.kind = R_CREATE, .sequence = next(), .inode = status.st_ino, .folder = folder_of(path_a)};
    append(record, path_a, "", NULL);
  }
  return fd;
}

/* Another name for what a rename or an unlink takes the name of, in `name`; empty where there was nothing. */
static void put_aside(const char *path, uint64_t sequence, char *name) {
  snprintf(name, PATH_MAX, "%.4000s/%llu", trash, (unsigned long long)sequence);
  if (marked(SYS_linkat, AT_FDCWD, (long)path, AT_FDCWD, (long)name, 0) != 0) name[0] = 0;
}

static long do_rename(long number, const long *a, int from_folder, char *from, int to_folder, char *to) {
  int is_from = watched_at(from_folder, from, path_a), is_to = watched_at(to_folder, to, path_b);
  if (!is_from && !is_to) return marked(number, a[0], a[1], a[2], a[3], a[4]);
  int error = step(RENAME, path_b, 0, NULL);
  if (error != 0) return -error;
  static char aside[PATH_MAX], both[2 * PATH_MAX];
  struct record record = {.kind = R_RENAME, .sequence = next(), .folder = folder_of(path_b)};
  put_aside(path_b, record.sequence, aside);
  long result = marked(number, a[0], a[1], a[2], a[3], a[4]);
  snprintf(both, sizeof both, "%s\n%s", path_b, aside);
  if (result == 0) append(record, path_a, both, NULL);
  return result;
}

static long do_link(long number, const long *a, int folder, char *to) {
  if (!watched_at(folder, to, path_a)) return marked(number, a[0], a[1], a[2], a[3], a[4]);
  int error = step(CREATE, path_a, 0, NULL);
  if (error != 0) return -error;
  struct record record = {.kind = R_CREATE, .sequence = next(), .folder = folder_of(path_a)};
  long result = marked(number, a[0], a[1], a[2], a[3], a[4]);
  if (result == 0) append(record, path_a, "", NULL);
  return result;
}

static long do_unlink(long number, const long *a, int folder, char *path, int is_folder) {
  if (!watched_at(folder, path, path_a)) return marked(number, a[0], a[1], a[2], 0, 0);
  int error = step(is_folder ? FOLDER : REMOVE, path_a, 0, NULL);
  if (error != 0) return -error;
  struct record record = {.kind = is_folder ? R_RMDIR : R_UNLINK, .sequence = next(), .folder = folder_of(path_a)};
  put_aside(path_a, record.sequence, path_b);
  long result = marked(number, a[0], a[1], a[2], 0, 0);
  if (result == 0) append(record, path_a, path_b, NULL);
  return result;
}

static long do_mkdir(long number, const long *a, int folder, char *path) {
  struct stat status;
  if (!watched_at(folder, path, path_a) || stat(path_a, &status) == 0) return marked(number, a[0], a[1], a[2], 0, 0);
  int error = step(FOLDER, path_a, 0, NULL);
  if (error != 0) return -error;
  struct record record = {.kind = R_MKDIR, .sequence = next(), .folder = folder_of(path_a)};
  long result = marked(number, a[0], a[1], a[2], 0, 0);
  if (result == 0) append(record, path_a, "", NULL);
  return result;
}

/* By sendmsg and recvmsg, which have an argument free for the mark. What is received has been received when it is a step. */
static long do_socket(long number, const long *a) {
  int isSend = number == SYS_sendto || number == SYS_sendmsg;
  if (isSend) step(SEND, "socket", 0, NULL);
  struct iovec part = {(void *)a[1], (size_t)a[2]};
  struct msghdr message = {.msg_name = (void *)a[4], .msg_iov = &part, .msg_iovlen = 1};
  long result;
  if (number == SYS_sendmsg || number == SYS_recvmsg) {
    result = marked(number, a[0], a[1], a[2], 0, 0);
  } else if (isSend) {
    message.msg_namelen = a[4] == 0 ? 0 : (socklen_t)a[5];
    result = marked(SYS_sendmsg, a[0], (long)&message, a[3], 0, 0);
  } else {
    socklen_t *length = (socklen_t *)a[5];
    message.msg_namelen = a[4] == 0 || length == NULL ? 0 : *length;
    result = marked(SYS_recvmsg, a[0], (long)&message, a[3], 0, 0);
    if (length != NULL) *length = message.msg_namelen;
  }
  if (!isSend && result > 0) step(RECEIVE, "socket", 0, NULL);
  return result;
}

static long dispatch(long number, const long *a) {
  switch (number) {
    case SYS_write: return do_write(number, a, a[2], -1);
    case SYS_writev: return do_write(number, a, bytes_in((struct iovec *)a[1], a[2]), -1);
    case SYS_pwrite64: return do_write(number, a, a[2], a[3]);
    case SYS_fsync: case SYS_fdatasync: return do_sync(number, a);
    case SYS_ftruncate: return do_truncate(number, a, (uint64_t)a[1]);
    case SYS_fallocate: return do_truncate(number, a, (uint64_t)(a[2] + a[3]));
    case SYS_openat: return do_open(a);
    case SYS_renameat2: return do_rename(number, a, (int)a[0], (char *)a[1], (int)a[2], (char *)a[3]);
    case SYS_linkat: return do_link(number, a, (int)a[2], (char *)a[3]);
    case SYS_unlinkat: return do_unlink(number, a, (int)a[0], (char *)a[1], ((int)a[2] & AT_REMOVEDIR) != 0);
    case SYS_mkdirat: return do_mkdir(number, a, (int)a[0], (char *)a[1]);
#ifdef SYS_renameat
    case SYS_renameat: return do_rename(number, a, (int)a[0], (char *)a[1], (int)a[2], (char *)a[3]);
#endif
#ifdef SYS_open /* the older names, which arm64 has not */
    case SYS_open: return do_open((long[]){AT_FDCWD, a[0], a[1], a[2], 0, 0});
    case SYS_creat: return do_open((long[]){AT_FDCWD, a[0], O_CREAT | O_WRONLY | O_TRUNC, a[1], 0, 0});
    case SYS_rename: return do_rename(number, a, AT_FDCWD, (char *)a[0], AT_FDCWD, (char *)a[1]);
    case SYS_link: return do_link(number, a, AT_FDCWD, (char *)a[1]);
    case SYS_unlink: return do_unlink(number, a, AT_FDCWD, (char *)a[0], 0);
    case SYS_rmdir: return do_unlink(number, a, AT_FDCWD, (char *)a[0], 1);
    case SYS_mkdir: return do_mkdir(number, a, AT_FDCWD, (char *)a[0]);
#endif
    default: return -ENOSYS;
  }
}

static int is_socket_call(long number) {
  return number == SYS_sendto || number == SYS_sendmsg || number == SYS_recvfrom || number == SYS_recvmsg;
}

static void trapped(int signal, siginfo_t *info, void *raw) {
  (void)signal;
  ucontext_t *context = raw;
  int saved = errno;
  long number = info->si_syscall; /* the register may hold a result already */
#if defined(__x86_64__)
  greg_t *r = context->uc_mcontext.gregs;
  long a[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
  greg_t *result = &r[REG_RAX];
#else
  unsigned long long *r = context->uc_mcontext.regs;
  long a[6] = {(long)r[0], (long)r[1], (long)r[2], (long)r[3], (long)r[4], (long)r[5]};
  unsigned long long *result = &r[0];
#endif
  if (getpid() != owner) {
    *result = marked(number, a[0], a[1], a[2], a[3], a[4]);
  } else if (is_socket_call(number)) {
    *result = do_socket(number, a); /* may wait: without the mutex */
  } else {
    struct stat status;
    /* What is no file may block, and is nobody's business. */
    int isFile = (number != SYS_write && number != SYS_writev) || (fstat((int)a[0], &status) == 0 && S_ISREG(status.st_mode));
    if (isFile) pthread_mutex_lock(&mutex);
    *result = isFile ? dispatch(number, a) : marked(number, a[0], a[1], a[2], a[3], a[4]);
    if (isFile) pthread_mutex_unlock(&mutex);
  }
  errno = saved;
}

/* Bun has an answer of its own to SIGSYS, which says that there is no such call. */
int sigaction(int signal, const struct sigaction *action, struct sigaction *old) {
  static int (*real)(int, const struct sigaction *, struct sigaction *);
  if (real == NULL) *(void **)&real = dlsym(RTLD_NEXT, "sigaction");
  return real(signal, signal == SIGSYS && control != NULL && action != NULL && action->sa_sigaction != trapped ? NULL : action, old);
}

static void fail(const char *what) {
  fprintf(stderr, "storage_faults: %s: %s\n", what, strerror(errno));
  _exit(70);
}

static void trap_calls(int with_sockets) {
  static const int calls[] = {
    SYS_write, SYS_writev, SYS_pwrite64, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_openat, SYS_renameat2,
    SYS_linkat, SYS_unlinkat, SYS_mkdirat,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef SYS_open
    SYS_open, SYS_creat, SYS_rename, SYS_link, SYS_unlink, SYS_rmdir, SYS_mkdir,
#endif
    SYS_sendto, SYS_sendmsg, SYS_recvfrom, SYS_recvmsg,
  };
  int count = (int)(sizeof calls / sizeof calls[0]) - (with_sockets ? 0 : 4);
  static struct sock_filter filter[64];
  int at = 0;
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]));
  filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK_LOW, 0, 3);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]) + 4);
  filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK_HIGH, 0, 1);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int call = 0; call < count; call++, at++) {
    filter[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[call],
                                              (unsigned char)(count - call), 0);
  }
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  struct sock_fprog program = {(unsigned short)at, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("PR_SET_NO_NEW_PRIVS");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) fail("PR_SET_SECCOMP");
}

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("STORAGE_FAULTS");
  under = getenv("STORAGE_FAULTS_UNDER");
  if (folder == NULL || under == NULL) return;
  owner = getpid();
  under_length = strlen(under);
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/control", folder);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) fail(path);
  control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (control == MAP_FAILED) fail("mmap");
  close(fd);
  snprintf(path, sizeof path, "%s/journal", folder);
  journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (journal < 0) fail(path);
  journal = fcntl(journal, F_DUPFD_CLOEXEC, 900); /* out of the way of a program that counts its descriptors */
  snprintf(trash, sizeof trash, "%s/trash", folder);
  struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART};
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, SIGSYS);
  if (sigaction(SIGSYS, &action, NULL) != 0) fail("sigaction");
  trap_calls(getenv("STORAGE_FAULTS_SOCKETS") != NULL);
}
