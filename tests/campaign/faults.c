// Loaded before libc by LD_PRELOAD: counts the steps by which a command and its workers change files of a
// folder, and stops them before each step from a chosen one on. All writes of a file that is not in its place
// yet are one step: a kill between them leaves what the next attempt removes.
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct shared {
    long steps;
    long resumed;  // how often the campaign has let the processes go on
};
static struct shared* shared;  // by all processes of the command, and the campaign
static long first;
static char folder[PATH_MAX];
static char unfinished[PATH_MAX];  // which this process wrote to in its last step
static pid_t group;

__attribute__((constructor)) static void begin(void) {
    const char* const counter = getenv("QUICGYM_FAULTS_COUNTER");
    const int file = counter == NULL ? -1 : open(counter, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void* const memory = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (getenv("QUICGYM_FAULTS_GROUP") == NULL) {
        char text[32];
        snprintf(text, sizeof text, "%d", (int)getpgrp());
        setenv("QUICGYM_FAULTS_GROUP", text, 1);
    }
    group = atoi(getenv("QUICGYM_FAULTS_GROUP"));
    // A copy: programs that change their title write where the environment was.
    snprintf(folder, sizeof folder, "%s", getenv("QUICGYM_FAULTS_FOLDER"));
    first = atol(getenv("QUICGYM_FAULTS_STEP"));
    shared = memory == MAP_FAILED ? NULL : memory;
}

static void step(void) {
    unfinished[0] = '\0';
    const long resumed = __atomic_load_n(&shared->resumed, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&shared->steps, 1, __ATOMIC_SEQ_CST) < first) return;
    // Ray's workers have groups of their own: the campaign stops them. Again and again, because it may just have
    // continued the others.
    while (__atomic_load_n(&shared->resumed, __ATOMIC_SEQ_CST) == resumed) {
        kill(-group, SIGSTOP);
        usleep(1000);
    }
}

static int is_inside(const char* path) {
    return strncmp(path, folder, strlen(folder)) == 0;
}

// Whether a file is inside, and its path.
static int path_inside(int file, char path[PATH_MAX]) {
    char link[64];
    if (shared == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return 0;
    path[size] = '\0';
    return is_inside(path);
}

static void step_of_file(int file) {
    char path[PATH_MAX];
    if (path_inside(file, path)) step();
}

static void step_of_write(int file) {
    static const char end[] = ".quicgym-new";
    char path[PATH_MAX];
    if (!path_inside(file, path) || strcmp(path, unfinished) == 0) return;
    step();
    const size_t size = strlen(path);
    if (size >= sizeof end && strcmp(path + size - (sizeof end - 1), end) == 0) strcpy(unfinished, path);
}

static void step_of_path(const char* path) {
    char here[PATH_MAX];
    if (shared == NULL) return;
    if (path[0] == '/' ? is_inside(path) : getcwd(here, sizeof here) != NULL && is_inside(here)) step();
}

ssize_t write(int file, const void* data, size_t size) {
    step_of_write(file);
    return syscall(SYS_write, file, data, size);
}

ssize_t pwrite64(int file, const void* data, size_t size, off64_t offset) {
    step_of_write(file);
    return syscall(SYS_pwrite64, file, data, size, offset);
}

ssize_t writev(int file, const struct iovec* parts, int count) {
    step_of_write(file);
    return syscall(SYS_writev, file, parts, count);
}

int fsync(int file) {
    step_of_file(file);
    return (int)syscall(SYS_fsync, file);
}

int ftruncate64(int file, off64_t size) {
    step_of_file(file);
    return (int)syscall(SYS_ftruncate, file, size);
}

int rename(const char* from, const char* to) {
    step_of_path(to);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char* path) {
    step_of_path(path);
    return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
