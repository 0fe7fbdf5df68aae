#ifndef CREDMGR_CPOSIX_H
#define CREDMGR_CPOSIX_H

// The parts of POSIX that Swift cannot import: variadic functions, macros, and the storage of a signal handler.

// Without _GNU_SOURCE, so that the C library's structures have the same layout as in Swift's module of it.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline int credmgr_open(const char *path, int flags, unsigned mode) {
  int descriptor;
  do {
    descriptor = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

/// Opens closed standard streams, whose numbers the next files would get: messages would be written into them. Standard
/// input then ends immediately, and writing to standard output still fails.
static inline void credmgr_open_standard_streams(void) {
  for (int descriptor = 0; descriptor < 3; descriptor++) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // open(2) returns the lowest free number.
    if (open("/dev/null", descriptor == 2 ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

/// The number of columns of a terminal, or 0.
static inline int credmgr_columns(int descriptor) {
  struct winsize size;
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static inline int credmgr_set_nonblocking(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags < 0 ? -1 : fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

// From <fcntl.h> with _GNU_SOURCE; part of the kernel's interface.
#define CREDMGR_F_OFD_GETLK 36
#define CREDMGR_F_OFD_SETLK 37

/// Locks a byte of a file for writing without waiting, or releases it if `locks` is 0. The open file owns the lock, so
/// it also excludes other threads of this process.
static inline int credmgr_lock(int descriptor, int64_t byte, int locks) {
  struct flock range = {.l_type = locks ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
  return fcntl(descriptor, CREDMGR_F_OFD_SETLK, &range);
}

/// Returns 1 if another open file has locked the byte, 0 if none has, and -1 if that is unknown.
static inline int credmgr_is_locked(int descriptor, int64_t byte) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
  return fcntl(descriptor, CREDMGR_F_OFD_GETLK, &range) != 0 ? -1 : range.l_type != F_UNLCK;
}

/// Renames a file, unless the new name exists.
static inline int credmgr_rename_new(const char *from, const char *to) {
  // RENAME_NOREPLACE from <stdio.h> with _GNU_SOURCE.
  return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1);
}

static inline int credmgr_set_undumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

extern char **environ;

static inline char *const *credmgr_environment(void) { return environ; }

/// Creates an unnamed file in memory (memfd_create(2)).
static inline int credmgr_memory_file(void) {
  return (int)syscall(SYS_memfd_create, "", 1U /* MFD_CLOEXEC */);
}

static inline int credmgr_wait_exit_status(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline int credmgr_get_core_limit(uint64_t *soft) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return -1;
  *soft = limit.rlim_cur;
  return 0;
}

static inline int credmgr_set_core_limit(uint64_t soft) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return -1;
  limit.rlim_cur = soft;
  return setrlimit(RLIMIT_CORE, &limit);
}

// Signals. A handler sets flags of this type (C11, 7.14.1.1) and calls only what signal-safety(7) allows. The flags are
// weak because functions that use them may be inlined across modules: the program has one copy of each.
__attribute__((weak)) volatile sig_atomic_t credmgr_caught_signal = 0;
__attribute__((weak)) volatile sig_atomic_t credmgr_caught_second = 0;

/// The seconds that credmgr has to clean up before another signal ends it.
static const int credmgr_patience = 2;

/// The first signal sets the flag. Signals shortly after it count as the same request: impatient users repeat it, and
/// some programs forward signals that the terminal sent. A later signal ends the program.
static inline void credmgr_catch_signal(int number) {
  int code = errno;
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (credmgr_caught_signal == 0) {
    credmgr_caught_signal = number;
    credmgr_caught_second = (sig_atomic_t)now.tv_sec;
  } else if ((sig_atomic_t)now.tv_sec - credmgr_caught_second > credmgr_patience) {
    signal(number, SIG_DFL);
    raise(number);
  }
  errno = code;
}

static inline int credmgr_last_signal(void) { return credmgr_caught_signal; }

static inline void credmgr_forget_signal(void) { credmgr_caught_signal = 0; }

static inline sigset_t credmgr_ending_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
  for (int index = 0; index < 5; index++) sigaddset(&set, numbers[index]);
  return set;
}

/// Catches the signal unless it is ignored (nohup). Calls are not restarted, so that waiting ends.
static inline void credmgr_catch(int number) {
  struct sigaction action = {.sa_handler = credmgr_catch_signal, .sa_mask = credmgr_ending_signals()}, old;
  if (sigaction(number, NULL, &old) != 0 || old.sa_handler == SIG_IGN) return;
  sigaction(number, &action, NULL);
}

// Whether the signals were already ignored at the start; weak for the same reason.
__attribute__((weak)) int credmgr_ignored_signals = 0;

static inline void credmgr_ignore_failed_writes(void) {
  if (signal(SIGPIPE, SIG_IGN) == SIG_IGN) credmgr_ignored_signals |= 1;
  if (signal(SIGXFSZ, SIG_IGN) == SIG_IGN) credmgr_ignored_signals |= 2;
}

static inline void credmgr_restore_failed_writes(void) {
  if (!(credmgr_ignored_signals & 1)) signal(SIGPIPE, SIG_DFL);
  if (!(credmgr_ignored_signals & 2)) signal(SIGXFSZ, SIG_DFL);
}

/// Whether a blocked ending signal is pending.
static inline int credmgr_ending_signal_waits(void) {
  sigset_t set;
  if (sigpending(&set) != 0) return 0;
  return sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGHUP) == 1;
}

/// Spawns with default signal handlers and an empty signal mask; -1 for a stream means /dev/null, other numbers are
/// kept or duplicated. Returns an errno.
static inline int credmgr_spawn(
  pid_t *child, const char *path, char *const *arguments, char *const *environment, int input, int output, int error,
  int own_session
) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  sigset_t none, all = credmgr_ending_signals();
  int streams[3] = {input, output, error};
  int code = posix_spawnattr_init(&attributes);
  if (code != 0) return code;
  code = posix_spawn_file_actions_init(&actions);
  if (code != 0) {
    posix_spawnattr_destroy(&attributes);
    return code;
  }
  sigemptyset(&none);
  sigaddset(&all, SIGPIPE);
  sigaddset(&all, SIGXFSZ);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(
    &attributes,
    POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (own_session ? 0x80 /* POSIX_SPAWN_SETSID */ : 0));
  for (int stream = 0; code == 0 && stream < 3; stream++) {
    if (streams[stream] < 0)
      code = posix_spawn_file_actions_addopen(
        &actions, stream, "/dev/null", stream == 0 ? O_RDONLY : O_WRONLY, 0);
    else
      code = posix_spawn_file_actions_adddup2(&actions, streams[stream], stream);
  }
  if (code == 0) code = posix_spawn(child, path, &actions, &attributes, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return code;
}

/// The file that the kernel was asked to run, under its name at that time; NULL if unknown (getauxval(3)).
static inline const char *credmgr_started_file(void) { return (const char *)getauxval(AT_EXECFN); }

// The kernel keyring (keyrings(7)) without libkeyutils, because glibc has no functions for these calls.

/// Adds a key to the keyring of this process, which possesses it there even if its session's keyring was revoked.
static inline int32_t credmgr_key_add(const char *name, const void *bytes, size_t count) {
  return (int32_t)syscall(SYS_add_key, "user", name, bytes, count, -2 /* KEY_SPEC_PROCESS_KEYRING */);
}

/// Links a key into the user's keyring, in place of one with the same name.
static inline int credmgr_key_publish(int32_t key) {
  return (int)syscall(SYS_keyctl, 8 /* KEYCTL_LINK */, (long)key, -4L /* KEY_SPEC_USER_KEYRING */, 0L, 0L);
}

/// Unlinks a key from the keyring of this process, or from the user's, for which no right to the key is needed.
static inline int credmgr_key_unlink(int32_t key, int from_user) {
  return (int)syscall(SYS_keyctl, 9 /* KEYCTL_UNLINK */, (long)key, from_user ? -4L : -2L, 0L, 0L);
}

static inline int32_t credmgr_key_find(const char *name) {
  return (int32_t)syscall(SYS_keyctl, 10 /* KEYCTL_SEARCH */, -4L, "user", name, 0L);
}

static inline long credmgr_key_read(int32_t key, void *bytes, size_t count) {
  return syscall(SYS_keyctl, 11 /* KEYCTL_READ */, (long)key, bytes, count, 0L);
}

static inline int credmgr_key_set_timeout(int32_t key, unsigned seconds) {
  return (int)syscall(SYS_keyctl, 15 /* KEYCTL_SET_TIMEOUT */, (long)key, (long)seconds, 0L, 0L);
}

/// Grants all rights to the possessor and the user: processes outside the session have to read the key as well.
static inline int credmgr_key_set_permissions(int32_t key) {
  return (int)syscall(SYS_keyctl, 5 /* KEYCTL_SETPERM */, (long)key, 0x3f3f0000L, 0L, 0L);
}

static inline int credmgr_key_invalidate(int32_t key) {
  return (int)syscall(SYS_keyctl, 21 /* KEYCTL_INVALIDATE */, (long)key, 0L, 0L, 0L);
}

#endif
