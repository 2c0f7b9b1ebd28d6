/* Makes the k-th call that changes a file fail, and some after it, in the process that loads it first (LD_PRELOAD).

   Counted are calls on regular files and directories: write, pwrite, fsync, fdatasync, ftruncate,
   rename, unlink and open with O_CREAT. Mode 1 lets a write write half before it fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static long left = -1, failed = 0;
static int number = 0, several = 1, halves = 0, armed = 0;

void arm(long k, int error, int calls, int half) {
    left = k, number = error, several = calls, halves = half, failed = 0, armed = 1;
}

long disarm(void) {
    armed = 0;
    return failed;
}

static int is_file(int fd) {
    struct stat facts;
    return fstat(fd, &facts) == 0 && (S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode));
}

static int fails(void) {
    if (!armed) return 0;
    int now = left <= 0 && left > -several;
    left--;
    if (now) failed++;
    return now;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = dlsym(RTLD_NEXT, #name)
#define REFUSE do { errno = number; return -1; } while (0)

ssize_t write(int fd, const void *data, size_t n) {
    REAL(write);
    if (armed && is_file(fd) && fails()) {
        if (halves && n > 1) return real(fd, data, n / 2);
        REFUSE;
    }
    return real(fd, data, n);
}

#define PWRITE(name, offset)                                                    \
    ssize_t name(int fd, const void *data, size_t n, offset at) {               \
        REAL(name);                                                             \
        if (armed && is_file(fd) && fails()) REFUSE;                            \
        return real(fd, data, n, at);                                           \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define SYNC(name)                                                              \
    int name(int fd) {                                                          \
        REAL(name);                                                             \
        if (armed && is_file(fd) && fails()) REFUSE;                            \
        return real(fd);                                                        \
    }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, offset)                                                  \
    int name(int fd, offset size) {                                             \
        REAL(name);                                                             \
        if (armed && is_file(fd) && fails()) REFUSE;                            \
        return real(fd, size);                                                  \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    REAL(rename);
    if (fails()) REFUSE;
    return real(from, to);
}

int unlink(const char *path) {
    REAL(unlink);
    if (fails()) REFUSE;
    return real(path);
}

#define OPEN(name)                                                              \
    int name(const char *path, int flags, ...) {                                \
        REAL(name);                                                             \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;               \
        va_end(rest);                                                           \
        if ((flags & O_CREAT) && fails()) REFUSE;                               \
        return real(path, flags, mode);                                         \
    }
OPEN(open)
OPEN(open64)
